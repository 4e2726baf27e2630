/* What scrolls sideways can be reached by the keyboard. The theme wraps tables after the page is loaded. */
const WIDE = ".md-typeset__scrollwrap, .md-typeset .equation, .md-typeset pre > code";
const mark = () => document.querySelectorAll(WIDE).forEach((wide) => {
  if (wide.scrollWidth > wide.clientWidth && wide.tabIndex !== 0) wide.tabIndex = 0;
});
new MutationObserver(mark).observe(document.body, { childList: true, subtree: true });
addEventListener("resize", mark);
mark();
