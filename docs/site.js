/* What scrolls sideways can be reached by the keyboard. */
document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset math[display=block], .highlight > pre, pre > code").forEach(
  (wide) => { if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0; }
);
