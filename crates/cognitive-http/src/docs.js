// Text only ever becomes text: nothing of the description is read as markup.
const add = (parent, tag, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  parent.append(element);
  return element;
};
const list = document.getElementById("operations");
const form = document.getElementById("key");
const show = document_ => {
  form.hidden = true;
  list.textContent = "";
  for (const [path, methods] of Object.entries(document_.paths))
    for (const [method, operation] of Object.entries(methods)) {
      const entry = add(list, "details");
      const summary = add(entry, "summary");
      add(summary, "span", method.toUpperCase(), "method");
      add(summary, "code", path);
      add(summary, "span", " " + (operation.summary || ""));
      const schema = operation.requestBody?.content?.["application/json"]?.schema;
      if (schema) add(entry, "pre", JSON.stringify(schema, null, 2));
    }
};
// A browser shows no key by itself. The one that is typed stays in this page.
const load = key => fetch("/openapi.json", key ? { headers: { authorization: "Bearer " + key } } : {}).then(async answer => {
  const said = await answer.json();
  if (answer.ok) return show(said);
  form.hidden = answer.status !== 401;
  list.textContent = said.error?.message || answer.statusText;
}).catch(error => { list.textContent = String(error); });
form.addEventListener("submit", event => {
  event.preventDefault();
  load(form.querySelector("input").value);
});
load();
