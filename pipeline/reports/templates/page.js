"use strict";
(() => {
  const said = document.getElementById("said");

  const copied = (button) => {
    said.textContent = "copied";
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  };

  const select = (code) => {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  };

  for (const button of document.querySelectorAll("button.copy")) {
    const code = document.getElementById(button.dataset.copies);
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        select(code);
        if (!document.execCommand("copy")) return;
      }
      copied(button);
    });
  }

  const tip = document.getElementById("tip");
  const words = (mark) => {
    const title = mark.querySelector(":scope > title");
    if (title) {
      mark.dataset.tip = title.textContent;
      title.remove();
    } else if (mark.hasAttribute("title")) {
      mark.dataset.tip = mark.title;
      mark.removeAttribute("title");
    }
    return mark.dataset.tip;
  };
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest(".tip, .grid td, .field [data-ranks]");
    tip.hidden = !mark;
    if (mark) tip.textContent = words(mark);
  });
  document.addEventListener("pointermove", (event) => {
    if (tip.hidden) return;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 12, room))}px`;
    tip.style.top = `${event.clientY + 18}px`;
  });

  const shown = (table, words) => {
    let hits = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      hits += !row.hidden;
    }
    return hits;
  };
  for (const field of document.querySelectorAll("input[data-searches]")) {
    const table = document.getElementById(field.dataset.searches);
    field.hidden = false;
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const hits = shown(table, words);
      field.parentNode.querySelector(".hits").textContent = words.length ? `${hits} rows` : "";
    });
  }

  const order = (cell) => {
    const value = cell.dataset.value;
    return value === undefined ? cell.textContent : value === "" ? -Infinity : Number(value);
  };
  const sort = (table, place, sign) => {
    const rows = [...table.tBodies[0].rows].map((row) => [order(row.cells[place]), row]);
    rows.sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };
  for (const heading of document.querySelectorAll("table.sortable thead th")) {
    heading.classList.add("sorts");
    heading.tabIndex = 0;
    const turn = () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(heading.closest("table"), heading.cellIndex, down ? -1 : 1);
    };
    heading.addEventListener("click", turn);
    heading.addEventListener("keydown", (event) => { if (event.key === "Enter") turn(); });
  }

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const part of closed) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of closed) part.open = false;
  });
})();
