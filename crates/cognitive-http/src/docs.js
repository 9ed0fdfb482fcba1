// Text only ever becomes text: nothing of the description is read as markup. Addresses are relative, for a proxy with a path.
const add = (parent, tag, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  parent.append(element);
  return element;
};
const list = document.getElementById("operations");
const form = document.getElementById("key");
// After a login no key is needed here; a typed key stays in this page.
let key = "";
const ask = (path, options = {}) =>
  fetch(path.replace(/^\//, ""), { ...options, headers: { "x-cogn-studio": "1", ...options.headers, ...(key && { authorization: "Bearer " + key }) } });
const schemaOf = (all, schema) => {
  const target = schema?.$ref?.split("/").pop();
  return target ? all.components.schemas[target] : schema;
};
// An input to begin with: the members that are required.
const sample = (all, schema) => {
  const known = schemaOf(all, schema) || {};
  const first = known.anyOf?.[0];
  if (first) return sample(all, first);
  if ("const" in known) return known.const;
  if (known.enum) return known.enum[0];
  const type = Array.isArray(known.type) ? known.type[0] : known.type;
  if (type === "object" || known.properties)
    return Object.fromEntries((known.required || []).map(name => [name, sample(all, known.properties?.[name])]));
  return { array: [], integer: known.minimum || 0, number: known.minimum || 0, boolean: false, string: "" }[type] ?? null;
};
const tryOut = (entry, all, path, schema) => {
  const run = add(entry, "form");
  const input = add(run, "textarea", JSON.stringify(sample(all, schema), null, 2));
  input.rows = 6;
  add(run, "button", "Run");
  const answer = add(entry, "pre");
  answer.hidden = true;
  run.addEventListener("submit", event => {
    event.preventDefault();
    answer.hidden = false;
    answer.textContent = "…";
    ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: input.value })
      .then(async said => { answer.textContent = said.status + "\n" + JSON.stringify(await said.json(), null, 2); })
      .catch(error => { answer.textContent = String(error); });
  });
};
const describe = (all, path, method, operation) => {
  const entry = add(list, "details");
  const summary = add(entry, "summary");
  add(summary, "span", method.toUpperCase(), "method");
  add(summary, "code", path);
  add(summary, "span", " " + (operation.summary || ""));
  const schema = operation.requestBody?.content?.["application/json"]?.schema;
  if (schema) add(entry, "pre", JSON.stringify(schemaOf(all, schema), null, 2));
  if (schema && !path.includes("{")) tryOut(entry, all, path, schema);
};
const show = all => {
  form.hidden = true;
  list.textContent = "";
  for (const { name, description } of all.tags) {
    add(list, "h2", description);
    for (const [path, methods] of Object.entries(all.paths))
      for (const [method, operation] of Object.entries(methods))
        if (operation.tags.includes(name)) describe(all, path, method, operation);
  }
};
const load = () => ask("openapi.json").then(async answer => {
  const said = await answer.json();
  if (answer.ok) return show(said);
  form.hidden = answer.status !== 401;
  list.textContent = said.error?.message || answer.statusText;
}).catch(error => { list.textContent = String(error); });
form.addEventListener("submit", event => {
  event.preventDefault();
  key = form.querySelector("input").value;
  load();
});
load();
