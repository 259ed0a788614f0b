// SPDX-License-Identifier: Apache-2.0
// Runs in a world of its own next to the page's scripts, which can neither see nor change it. Elements that can be used get numbers.
globalThis.stead ??= (() => {
  const MOST = 30000;
  let refs = [];
  const roles = { A: "link", BUTTON: "button", SELECT: "select", TEXTAREA: "text field", SUMMARY: "button", OPTION: "option" };
  const kinds = { submit: "button", button: "button", reset: "button", image: "button", checkbox: "checkbox", radio: "radio button",
    file: "file field", range: "slider", hidden: "" };
  const clean = (t, most = 200) => {
    const s = (t ?? "").replace(/\s+/g, " ").trim();
    return s.length > most ? `${s.slice(0, most)}…` : s;
  };
  const shown = (e) => {
    const style = getComputedStyle(e);
    return style.display !== "none" && style.visibility !== "hidden" && !e.hidden && e.getAttribute("aria-hidden") !== "true";
  };
  const role = (e) => {
    if (e.tagName === "INPUT") return kinds[e.type] ?? "text field";
    if (e.tagName === "A" && !e.hasAttribute("href") && !e.getAttribute("role")) return "";
    return roles[e.tagName] ?? (/^(button|link|tab|menuitem|checkbox|radio|switch|option|combobox|textbox)$/.exec(e.getAttribute("role") ?? "")?.[0]
      ?? (e.isContentEditable && !e.parentElement?.isContentEditable ? "text field" : e.hasAttribute("onclick") ? "button" : ""));
  };
  const label = (e) => clean(e.getAttribute("aria-label") || e.labels?.[0]?.textContent || (e.tagName === "INPUT" && /button|submit|reset/.test(e.type) ? e.value : "")
    || e.innerText || e.getAttribute("placeholder") || e.getAttribute("title") || e.querySelector?.("img[alt]")?.alt || e.name);
  const state = (e) => [
    e.tagName === "INPUT" && /checkbox|radio/.test(e.type) ? (e.checked ? "checked" : "not checked") : "",
    /^(INPUT|TEXTAREA)$/.test(e.tagName) && !/checkbox|radio|password|button|submit|reset|file/.test(e.type) && e.value ? `value "${clean(e.value, 100)}"` : "",
    e.tagName === "SELECT" ? `"${clean(e.selectedOptions[0]?.text, 60)}" of ${[...e.options].slice(0, 20).map((o) => `"${clean(o.text, 40)}"`).join(", ")}` : "",
    e.disabled ? "disabled" : "",
  ].filter(Boolean).join(", ");
  const snapshot = () => {
    const lines = [];
    let size = 0;
    let cut = false;
    refs = [];
    const add = (line) => {
      if (size + line.length > MOST) cut = true;
      else {
        size += line.length + 1;
        lines.push(line);
      }
    };
    const walk = (node, text) => {
      for (const e of node.shadowRoot ? [...node.shadowRoot.childNodes, ...node.childNodes] : node.childNodes) {
        if (cut) return text;
        if (e.nodeType === Node.TEXT_NODE) {
          text += e.data;
          continue;
        }
        if (e.nodeType !== Node.ELEMENT_NODE || /^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE|SVG|OPTION)$/i.test(e.tagName) || !shown(e)) continue;
        const what = role(e);
        const block = getComputedStyle(e).display !== "inline";
        if (what || block) {
          if (clean(text)) add(clean(text, 500));
          text = "";
        }
        if (what) {
          refs.push(e);
          const more = state(e);
          add(`[${refs.length}] ${what} "${label(e)}"${more ? ` (${more})` : ""}`);
        } else if (/^H[1-6]$/.test(e.tagName)) {
          add(`${"#".repeat(Number(e.tagName[1]))} ${clean(e.innerText)}`);
          for (const a of e.querySelectorAll("a[href], button")) {
            refs.push(a);
            add(`[${refs.length}] ${role(a)} "${label(a)}"`);
          }
        } else {
          text = walk(e, text);
          if (block) {
            if (clean(text)) add(clean(text, 500));
            text = "";
          }
        }
      }
      return text;
    };
    const rest = document.body ? walk(document.body, "") : "";
    if (clean(rest)) add(clean(rest, 500));
    return { url: location.href, title: clean(document.title), content: lines.join("\n"), cut };
  };
  const element = (ref) => {
    const e = refs[ref - 1];
    if (!e) throw new Error(`there is no element ${ref}; take a snapshot and use a number of it`);
    if (!e.isConnected) throw new Error(`element ${ref} is gone; take a snapshot again`);
    e.scrollIntoView({ block: "center", behavior: "instant" });
    return e;
  };
  return {
    snapshot,
    point(ref) {
      const e = element(ref);
      const box = e.getBoundingClientRect();
      if (!box.width || !box.height) throw new Error(`element ${ref} is not visible`);
      return { x: box.left + box.width / 2, y: box.top + box.height / 2, downloads: !!e.closest("a[href][download]") };
    },
    focus(ref) {
      const e = element(ref);
      e.focus();
      if ("value" in e) {
        e.select?.();
      }
      return {};
    },
    select(ref, value) {
      const e = element(ref);
      if (e.tagName !== "SELECT") throw new Error(`element ${ref} is not a select`);
      const option = [...e.options].find((o) => o.value === value || clean(o.text) === value);
      if (!option) throw new Error(`element ${ref} has no option "${value}"`);
      e.value = option.value;
      e.dispatchEvent(new Event("input", { bubbles: true }));
      e.dispatchEvent(new Event("change", { bubbles: true }));
      return {};
    },
    scroll(direction, amount) {
      const by = { page: innerHeight * 0.9, half: innerHeight / 2, end: document.documentElement.scrollHeight }[amount];
      scrollBy({ top: direction === "up" ? -by : by, behavior: "instant" });
      return { y: Math.round(scrollY), height: document.documentElement.scrollHeight };
    },
  };
})();
