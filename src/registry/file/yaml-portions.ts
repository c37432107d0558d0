/** A part of a document that is a document itself. */
interface YamlPortion {
  /** The top-level list of the portion; `undefined` for the fields that are no lists in block style. */
  list: string | undefined;
  lines: string[];
  itemCount: number;
}

const ITEMS_PER_PORTION = 200;

const LIST_KEY = /^([A-Za-z_]+):[ \t]*(#.*)?\r?$/;
const FIELD = /^([A-Za-z_]+):[ \t]/;
const ITEM = /^( *)-[ \t]/;
const CONTINUATION = /^([ \t#]|\r?$)/;

/**
 * Splits a text at the items of its top-level lists, because the parser needs memory for the whole text that it parses.
 * `undefined` if the text has another form.
 *
 * A portion can be no YAML, for example if a quoted text contains a line that looks like an item, or if an alias names
 * an anchor of another portion. The whole text must then be parsed.
 */
export function yamlPortions(text: string): YamlPortion[] | undefined {
  const fields: YamlPortion = { list: undefined, lines: [], itemCount: 0 };
  const portions = [fields];
  const names = new Set<string>();
  let current = fields;
  let indentation: number | undefined;
  for (const line of text.split('\n')) {
    const list = LIST_KEY.exec(line)?.[1];
    const name = list ?? FIELD.exec(line)?.[1];
    if (name !== undefined) {
      if (names.has(name)) return undefined;
      names.add(name);
    }
    const itemIndentation = ITEM.exec(line)?.[1]?.length;
    if (list !== undefined) {
      current = { list, lines: [`${list}:`], itemCount: 0 };
      indentation = undefined;
      portions.push(current);
    } else if (name !== undefined) {
      current = fields;
      fields.lines.push(line);
    } else if (current.list !== undefined && itemIndentation !== undefined) {
      indentation ??= itemIndentation;
      if (itemIndentation === indentation) {
        if (current.itemCount === ITEMS_PER_PORTION) {
          current = { list: current.list, lines: [`${current.list}:`], itemCount: 0 };
          portions.push(current);
        }
        current.itemCount++;
      }
      current.lines.push(line);
    } else if (CONTINUATION.test(line)) current.lines.push(line);
    else return undefined;
  }
  return portions;
}
