"""`capnets reproduce`: run the experiments behind the paper's tables and figures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capnets.cli.options import Json
from capnets.cli.printing import print_json, print_table
from capnets.errors import InputError

if TYPE_CHECKING:
    from capnets.paper.plan import Plan
    from capnets.paper.scheduler import Outcome

__all__ = ["reproduce"]


Names = Annotated[str | None, typer.Option(help="Only these, separated by commas.")]


def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(help="table1, figure2, main, all, …; lists them if omitted."),
    ] = None,
    scale: Annotated[str, typer.Option(help="smoke, small or full (the paper's sizes).")] = "full",
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", help="Local processes, one thread each.", show_default="1"),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler to use instead: tcp://…")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", "-o", help="Results folder.", show_default="results/SCALE"),
    ] = None,
    models: Names = None,
    tasks: Names = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="Training recipe: muon, fast or paper.", show_default="muon"),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            help="Upper bound on epochs.",
            show_default="as the recipe has it; 200 for paper at scale full",
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Seeds instead of the scale's, separated by commas.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run failed jobs again.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only list what would be run.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Run recorded jobs again and compare the bits.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run the experiments behind the paper's tables; the same command resumes after a stop."""
    from capnets.paper.plan import make_plan
    from capnets.paper.scales import find_scale

    if not tables:
        _list_tables(as_json=as_json)
        return
    plan = make_plan(
        _names("tables", ",".join(tables)),
        scale=find_scale(scale, recipe=recipe, epochs=epochs),
        models=None if models is None else _names("--models", models),
        tasks=None if tasks is None else _names("--tasks", tasks),
        seeds=None if seeds is None else _numbers("--seeds", seeds),
    )
    folder = results or Path("results") / scale
    if dry:
        _say_plan(plan, folder, as_json=as_json)
        return
    if verify:
        _verify(plan, folder, as_json=as_json)
        return
    from capnets.paper.cli.progress import watching
    from capnets.paper.scheduler import reproduce as run

    with watching(plan, folder) as watch:
        try:
            outcome = run(plan, folder, processes=jobs, cluster=cluster, retry=retry, watch=watch)
        except KeyboardInterrupt:
            typer.echo(
                f"Stopped. Finished jobs are in {folder}; the same command resumes.", err=True
            )
            raise typer.Exit(130) from None
    _say_outcome(outcome, folder, as_json=as_json)
    if outcome.errors:
        raise typer.Exit(1)


def _names(what: str, text: str) -> list[str]:
    """Split at commas; empty names, as after a trailing comma, are left out."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"{what}: no name in {text!r}; separate names by commas")
    return names


def _numbers(what: str, text: str) -> list[int]:
    names = _names(what, text)
    try:
        return [int(name) for name in names]
    except ValueError:
        raise InputError(f"{what} must be numbers separated by commas, not {text!r}") from None


def _list_tables(*, as_json: bool) -> None:
    from capnets.paper.tables import GROUPS, TABLES

    if as_json:
        rows = [{"name": t.name, "number": t.number, "shows": t.shows} for t in TABLES.values()]
        print_json(
            {"tables": rows, "groups": {name: list(group) for name, group in GROUPS.items()}}
        )
        return
    print_table(
        ["table", "in the paper", "content"],
        [(t.name, t.number, t.shows) for t in TABLES.values()],
    )
    typer.echo("Groups: " + "; ".join(f"{g} ({', '.join(t)})" for g, t in GROUPS.items()))


def _say_plan(plan: Plan, folder: Path, *, as_json: bool) -> None:
    from capnets.paper.execute import current
    from capnets.paper.results import Results

    there = current(Results(folder).read()) if (folder / "results.json").exists() else {}
    tables: list[dict[str, Any]] = []
    for table, entries in plan.tables:
        keys = {job.key for entry in entries for job in entry.needed}
        tables.append(
            {
                "name": table.name,
                "number": table.number,
                "entries": len(entries),
                "runs": len(keys),
                "done": sum(key in there for key in keys),
            }
        )
    runs, done = len(plan.jobs), sum(key in there for key in plan.jobs)
    if as_json:
        print_json({"results": str(folder), "tables": tables, "runs": runs, "done": done})
        return
    print_table(
        ["table", "in the paper", "entries", "runs", "done"], [tuple(t.values()) for t in tables]
    )
    typer.echo(f"{runs} runs in all, {done} done.")


def _verify(plan: Plan, folder: Path, *, as_json: bool) -> None:
    from capnets.paper import verify

    found = []
    for one in verify.verify(plan, folder):
        job = one.record.job
        name = f"{getattr(job, 'model', '')} {getattr(job, 'task', '')}".strip()
        found.append({"job": name, "metrics": one.metrics, "versions": one.versions})
        if not as_json:
            text = "same bits" if one.same else f"differs in {', '.join(one.metrics)}"
            if one.versions:
                text += f" (not the same: {', '.join(one.versions)})"
            typer.echo(f"{name}: {text}")
    if as_json:
        print_json(found)
    if any(one["metrics"] for one in found):
        raise typer.Exit(1)


def _say_outcome(outcome: Outcome, folder: Path, *, as_json: bool) -> None:
    failed = [
        {
            "model": getattr(record.job, "model", None),
            "task": getattr(record.job, "task", None),
            "failure": record.failure,
            "reason": record.reason,
        }
        for record in outcome.records.values()
        if record.failure
    ]
    not_done = Counter(outcome.errors.values())
    if as_json:
        done = len(outcome.records)
        told = {"results": str(folder), "done": done, "failed": failed, "not_done": not_done}
        print_json(told)
        return
    typer.echo(f"{len(outcome.records)} done, in {folder}.")
    if failed:
        print_table(
            ["failed", "task", "why"], [(f["model"], f["task"], f["failure"]) for f in failed]
        )
    for reason, count in sorted(not_done.items()):
        typer.secho(f"{count} not done: {reason}", fg="red", err=True)
    typer.echo(f"Compare with the paper: capnets report {folder}")
