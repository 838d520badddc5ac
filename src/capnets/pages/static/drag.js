// Reorder the rows of a list with a pointer or the arrow keys.

/** Call `move(key, place)` when a handle is dragged or moved by key; `done` when it is let go. */
export function makeSortable(list, { move, done }) {
  list.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest("[data-handle]");
    if (!handle || event.button !== 0) return;
    event.preventDefault();
    const row = handle.closest("[data-key]");
    const key = Number(row.dataset.key);
    row.classList.add("dragged");
    const follow = (e) => {
      if (e.pointerId !== event.pointerId) return;
      const rows = [...list.querySelectorAll("[data-key]")];
      const place = rows.filter((one) => {
        if (one === row) return false;
        const box = one.getBoundingClientRect();
        return e.clientY > box.top + box.height / 2;
      }).length;
      move(key, place);
    };
    const stop = (e) => {
      if (e.pointerId !== event.pointerId) return;
      row.classList.remove("dragged");
      document.removeEventListener("pointermove", follow);
      document.removeEventListener("pointerup", stop);
      document.removeEventListener("pointercancel", stop);
      handle.focus();
      done(key);
    };
    // A row that moves up is inserted anew and would lose the pointer, so the document listens.
    document.addEventListener("pointermove", follow);
    document.addEventListener("pointerup", stop);
    document.addEventListener("pointercancel", stop);
  });
  list.addEventListener("keydown", (event) => {
    const handle = event.target.closest("[data-handle]");
    const steps = { ArrowUp: -1, ArrowDown: 1 };
    if (!handle || !(event.key in steps)) return;
    event.preventDefault();
    const row = handle.closest("[data-key]");
    const rows = [...list.querySelectorAll("[data-key]")];
    move(Number(row.dataset.key), rows.indexOf(row) + steps[event.key]);
    done(Number(row.dataset.key));
    handle.focus();
  });
}
