import { describe, expect, it } from 'vitest';
import { parseYaml, yamlPortions } from '../../src/registry/file/yaml-document.js';

/** The document that the portions of a text give together; `undefined` if only the whole text can be parsed. */
function fromPortions(text: string): object | undefined {
  const document: Record<string, unknown> = {};
  try {
    for (const { list, lines, itemCount } of yamlPortions(text) ?? []) {
      for (const [name, value] of Object.entries(parseYaml(lines.join('\n')))) {
        if (name === list && Array.isArray(value) && value.length !== itemCount) return undefined;
        const before = document[name];
        document[name] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value;
      }
    }
  } catch {
    return undefined;
  }
  return yamlPortions(text) && document;
}

const many = Array.from({ length: 450 }, (_, index) => `  - client_id: c${index}\n    scopes: [a, b]\n`).join('');

describe('the portions of a registry file', () => {
  it.each([
    ['more items than one portion has', `revision: 3\nclients:\n${many}`],
    ['lists without indentation', 'clients:\n- client_id: a\n  scopes:\n  - one\n  - two\n- client_id: b\n'],
    ['comments, empty lines and line ends of Windows', '# a\r\nclients: # b\r\n\r\n  # c\r\n  - client_id: a\r\n'],
    ['empty and missing lists', 'agents: []\nclients:\norganizations:\n  - id: a\n'],
    ['fields over several lines', 'agents: [\n  { email: a }\n  ]\nclients:\n  - { client_id: a,\n      name: b }\n'],
    ['a list that is a mapping', 'clients:\n  name: a\n'],
    ['block scalars', 'clients:\n  - name: |\n      - text\n      more\n  - name: b\n'],
    ['an anchor in the same item', 'clients:\n  - scopes: &s [a]\n    origins: *s\n'],
  ])('give the same document as the whole text: %s', (_what, text) => {
    expect(fromPortions(text)).toEqual(parseYaml(text));
  });

  it.each([
    ['an alias of another portion', `organizations:\n  - &o { id: a }\nclients:\n  - *o\n`],
    ['a quoted text that contains an item', 'clients:\n  - name: "a\n  - b"\n'],
    ['a repeated list', 'clients:\n  - client_id: a\nclients:\n  - client_id: b\n'],
    ['a list that is repeated as a field', 'clients: []\nclients:\n  - client_id: b\n'],
    ['several documents', '---\nclients:\n  - client_id: a\n---\n'],
    ['quoted names of lists', '"clients":\n  - client_id: a\n'],
    ['items with different indentation', 'clients:\n  - client_id: a\n    - b\n - client_id: c\n'],
  ])('are not used: %s', (_what, text) => {
    expect(fromPortions(text)).toBeUndefined();
  });

  it('have few items each', () => {
    const counts = yamlPortions(`clients:\n${many}`)?.map(({ itemCount }) => itemCount);
    expect(counts).toEqual([0, 200, 200, 50]);
  });
});
