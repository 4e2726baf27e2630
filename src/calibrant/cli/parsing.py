"""How verbs are declared: options in groups, help in sections, interrupts that end quietly."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand

from calibrant.cli.trouble import Interrupted, NoReader

__all__ = ["SectionedCommand", "flattened"]


class SectionedCommand(TyperCommand):
    """A command whose help lists its options under the headings that they were given."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections, in the order in which their first options come."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                panel = getattr(parameter, "rich_help_panel", None)
                kind = "Other options"
                if parameter.param_type_name == "argument":
                    kind, record = "Arguments", (parameter.metavar or record[0], record[1])
                sections.setdefault(panel or kind, []).append(record)
        for heading in sorted(sections, key=lambda name: name == "Other options"):
            with formatter.section(heading):
                formatter.write_dl(sections[heading], col_max=26)


def flattened(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with each parameter that is a dataclass of options spread into those options."""
    hints = get_type_hints(verb, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(verb).parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint):
            groups[parameter.name] = hint
            kinds = get_type_hints(hint, include_extras=True)
            parameters += [_parameter(f.name, kinds[f.name], f.default) for f in fields(hint)]
        else:
            parameters.append(_parameter(parameter.name, hint, parameter.default))

    def call(**values: Any) -> None:
        for name, options in groups.items():
            values[name] = options(**{f.name: values.pop(f.name) for f in fields(options)})
        try:
            try:
                verb(**values)
            finally:
                sys.stdout.flush()
        except KeyboardInterrupt as error:
            raise Interrupted from error
        except BrokenPipeError as error:
            raise NoReader from error

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__name__, call.__doc__ = verb.__name__, verb.__doc__
    return call


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def option(text: str, *names: str, section: str, **more: Any) -> Any:
    """A typer option in a section of the help."""
    return typer.Option(*names, help=text, rich_help_panel=section, show_default=False, **more)
