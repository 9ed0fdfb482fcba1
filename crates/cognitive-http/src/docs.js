// Text only ever becomes text: nothing of the description is read as markup.
const add = (parent, tag, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  parent.append(element);
  return element;
};
fetch("/openapi.json").then(answer => answer.json()).then(document_ => {
  const list = document.getElementById("operations");
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
}).catch(error => { document.getElementById("operations").textContent = String(error); });
