// A face of a photo becomes an example, or its person joins the query.

import { go } from "../address.js";
import { toast } from "../toasts.js";
import { addPerson, exampleIn, query } from "./query.js";
import { queryValues } from "./query_address.js";

// As whoever is saved, else as an example of somebody new.
export function findFace(photo, face, saved = null) {
  if (saved && query.people.some((person) => person.saved?.id === saved.id)) {
    toast(`${saved.name} is in the query already.`);
    return;
  }
  try {
    addPerson(saved ? { saved } : { examples: [exampleIn(photo, face)] });
  } catch (error) {
    toast(error.message, "error");
    return;
  }
  go("search", queryValues());
  scrollTo({ top: 0 });
  toast("Added to the query.");
}
