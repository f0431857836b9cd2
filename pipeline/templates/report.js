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

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const part of closed) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of closed) part.open = false;
  });
})();
