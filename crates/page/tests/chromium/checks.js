// Looks at the page as it is laid out and returns what is wrong with it, as a list of sentences.
(() => {
  const problems = [];
  const say = (what, element) => {
    const name = element.id ? "#" + element.id : element.getAttribute("class") || "";
    problems.push(what + ": <" + element.localName + " " + name + "> " + (element.textContent || "").trim().slice(0, 60));
  };
  const all = (selector, root) => [...(root || document).querySelectorAll(selector)];
  const box = (element) => element.getBoundingClientRect();
  const seen = (element) => element.checkVisibility();
  const clipped = (element) => element.closest(".unseen") || getComputedStyle(element).clipPath !== "none";
  const print = matchMedia("print").matches;

  // Drawings.
  for (const picture of all("[role=img]")) {
    const size = box(picture);
    if (!seen(picture)) { say("a drawing that is not shown", picture); continue; }
    if (size.width < 100 || size.height < 20) say("a drawing of " + size.width + "x" + size.height, picture);
    const label = picture.getAttribute("aria-label");
    if (!label || label.length < 10) say("a drawing without words", picture);
    const marks = all("path, rect:not(.interval), text, .part", picture).filter((m) => box(m).width > 0 || box(m).height > 0);
    if (marks.length === 0) say("a drawing with nothing in it", picture);
  }
  for (const svg of all("svg:not(.at, .stretched)")) {
    if (seen(svg) && (box(svg).width < 1 || box(svg).height < 1)) say("a drawing without size", svg);
  }
  for (const mark of all("svg.at > path, path.curve, path.joined, path.below, text.label")) {
    if (seen(mark) && box(mark).width + box(mark).height <= 0) say("a mark without size", mark);
  }
  for (const shape of all("svg *")) {
    for (const attribute of shape.attributes) {
      if (/NaN|undefined|inf/i.test(attribute.value) && attribute.name !== "aria-label") say("a bad number in " + attribute.name, shape);
    }
  }

  // Nothing sticks out.
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) problems.push("the page is " + document.documentElement.scrollWidth + " wide on " + width);
  for (const element of all("body *")) {
    if (!seen(element) || clipped(element)) continue;
    if (!print && element.parentElement.closest(".scroll")) continue;
    const b = box(element);
    const out = (b) => b.width > 0 && (b.right > width + 1 || b.left < -1);
    if (out(b) && !out(box(element.parentElement))) say("sticks out at " + Math.round(b.left) + ".." + Math.round(b.right) + " of " + width, element);
  }

  // Tables of numbers may be moved sideways, tables of drawings need not.
  for (const region of all(".scroll:has(> .figures)")) {
    if (!print && region.scrollWidth > region.clientWidth + 1) say("a table of drawings that is cut off", region);
  }

  // Labels do not cover one another.
  const covers = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  for (const holder of all(".field, .axis, .joining")) {
    const labels = all(":scope > span, text.label", holder).filter(seen);
    labels.forEach((a, i) => labels.slice(i + 1).forEach((b) => {
      if (covers(box(a), box(b))) say("'" + a.textContent + "' is covered by", b);
    }));
  }

  // Reading without eyes, without a mouse.
  const ids = all("[id]").map((e) => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => problems.push("the id " + id + " twice"));
  for (const element of all("[aria-labelledby]")) {
    element.getAttribute("aria-labelledby").split(" ").filter((id) => !document.getElementById(id)).forEach((id) => say("labelled by nothing: " + id, element));
  }
  for (const cell of all("th")) if (!["col", "row"].includes(cell.scope)) say("a head without scope", cell);
  for (const table of all("table")) {
    if (!table.caption && !table.closest("[aria-label], [aria-labelledby]")) say("a table without a name", table);
    for (const row of table.rows) if (row.cells.length !== table.rows[0].cells.length) say("a row of another length", row);
  }
  for (const region of all("[tabindex]")) {
    if (region.tabIndex !== 0) say("a tabindex that changes the order", region);
    if (region.getAttribute("role") !== "region" || !(region.ariaLabel || region.hasAttribute("aria-labelledby"))) say("a stop without a name", region);
  }
  for (const link of all("a")) {
    const target = link.hash.length > 1 && document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (!target || !link.textContent.trim()) say("a link to nothing", link);
    if (seen(link) && !clipped(link) && box(link).height < 24) say("a link that a finger misses, " + box(link).height + " high", link);
  }
  if (!print && all("a")[0]?.hash !== "#" + document.querySelector("main")?.id) problems.push("no skip link");
  if (all("main h2").length >= 5 && all("nav[aria-label=Contents] a").length !== all("main h2").length) problems.push("contents that are not complete");
  for (const element of all("body > *")) {
    if (!["header", "nav", "main", "footer", "script"].includes(element.localName) && !element.classList.contains("skip")) say("outside of every landmark", element);
  }
  for (const list of all("ul, ol")) {
    if ([...list.children].some((child) => child.localName !== "li")) say("a list with something else in it", list);
  }
  for (const list of all("dl")) {
    if ([...list.children].some((child) => !["dt", "dd", "div"].includes(child.localName))) say("a list of terms with something else in it", list);
  }
  const names = all("nav, section, [role=region]").map((e) => e.getAttribute("aria-label") || document.getElementById(e.getAttribute("aria-labelledby"))?.textContent || "");
  names.filter((name, i) => !name || names.indexOf(name) !== i).forEach((name) => problems.push("two landmarks of one name: " + name));
  let level = 0;
  for (const heading of all("h1, h2, h3, h4, h5, h6")) {
    const next = Number(heading.localName[1]);
    if (next > level + 1) say("a heading that skips a level", heading);
    level = next;
  }
  if (all("h1").length !== 1) problems.push("not one h1 but " + all("h1").length);
  if (!document.documentElement.lang) problems.push("no language");
  if (!document.title) problems.push("no title");
  if (all("main").length !== 1) problems.push("not one main part");

  // Legible: size, and contrast of every text with what is behind it.
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const colour = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const c = colour(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  for (const element of all("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !seen(element) || clipped(element) || ["script", "style", "title"].includes(element.localName)) continue;
    const style = getComputedStyle(element);
    const ink = colour(element.closest("svg") ? style.fill : style.color);
    const [a, b] = [luminance(ink), luminance(behind(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) say("contrast of only " + contrast.toFixed(2), element);
    if (parseFloat(style.fontSize) < 10.5) say("text of " + style.fontSize, element);
  }
  return problems;
})()
