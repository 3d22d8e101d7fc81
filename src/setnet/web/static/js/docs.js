// The API's own description, readable; made from openapi.json without anything from elsewhere.

import { h } from "./dom.js";

const VERBS = ["get", "post", "put", "patch", "delete"];

function name(schema, all) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map((part) => name(part, all)).join(" or ");
  if (schema.type === "array") return `list of ${name(schema.items, all) || "anything"}`;
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  return schema.format === "binary" ? "bytes" : schema.type || "anything";
}

function fields(schema, all, seen = new Set()) {
  while (schema?.$ref) {
    if (seen.has(schema.$ref)) return [];
    seen.add(schema.$ref);
    schema = all[schema.$ref.split("/").pop()];
  }
  if (schema?.type === "array") return fields(schema.items, all, seen);
  const required = new Set(schema?.required || []);
  return Object.entries(schema?.properties || {}).map(([key, value]) => [
    key,
    name(value, all),
    required.has(key) ? "required" : "",
    value.description || "",
  ]);
}

function table(rows) {
  return h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["name", "type", "", ""].map((t) => h("th", { scope: "col" }, t)),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row) =>
        h(
          "tr",
          {},
          row.map((cell, n) => h("td", {}, n < 2 ? h("code", {}, cell) : cell)),
        ),
      ),
    ),
  );
}

function route(path, verb, about, all) {
  const inside = h(
    "div",
    { class: "inside" },
    ...(about.description || about.summary || "").split("\n\n").map((text) => h("p", {}, text.replace(/\s+/g, " "))),
  );
  if (about.parameters?.length)
    inside.append(
      h("h3", {}, "Parameters"),
      table(
        about.parameters.map((p) => [
          p.name,
          name(p.schema, all),
          `${p.in}${p.required ? ", required" : ""}`,
          p.description || p.schema?.description || "",
        ]),
      ),
    );
  for (const [kind, body] of Object.entries(about.requestBody?.content || {})) {
    inside.append(h("h3", {}, `Body: ${kind}`));
    const rows = fields(body.schema, all);
    inside.append(rows.length ? table(rows) : h("p", { class: "muted" }, name(body.schema, all)));
  }
  for (const [code, answer] of Object.entries(about.responses || {})) {
    if (!/^2/.test(code)) continue;
    const rows = fields(answer.content?.["application/json"]?.schema, all);
    if (rows.length) inside.append(h("h3", {}, `Answer ${code}`), table(rows));
  }
  return h(
    "details",
    { class: "route" },
    h(
      "summary",
      {},
      h("span", { class: "verb" }, verb.toUpperCase()),
      h("code", {}, path),
      h("span", { class: "muted small" }, (about.description || about.summary || "").split(/[.;]\s/)[0]),
    ),
    inside,
  );
}

async function begin() {
  const place = document.getElementById("routes");
  const response = await fetch("/api/v1/openapi.json");
  if (!response.ok) {
    place.replaceChildren(
      h(
        "p",
        { class: "notice error" },
        response.status === 401
          ? "Enter the token on the page first, then come back."
          : "The description could not be loaded.",
      ),
    );
    return;
  }
  const spec = await response.json();
  const all = spec.components?.schemas || {};
  const groups = new Map();
  for (const [path, verbs] of Object.entries(spec.paths))
    for (const verb of VERBS) {
      if (!verbs[verb]) continue;
      const tag = verbs[verb].tags?.[0] || "other";
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(route(path, verb, verbs[verb], all));
    }
  place.replaceChildren(
    ...[...groups].map(([tag, routes]) => h("section", { class: "tag-group" }, h("h2", {}, tag), routes)),
  );
}

begin();
