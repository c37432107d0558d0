// @ts-check
/**
 * A rule of markdownlint: each line of prose has as many words as fit into 120 columns. `markdownlint-cli2 --fix` wraps
 * the paragraphs. (Prettier would also pad each cell of a table to the width of its column.)
 *
 * @typedef {{ type: string; startLine: number; endLine: number; startColumn: number; children: Token[] }} Token
 * @typedef {{ lines: string[]; parsers: { micromark: { tokens: Token[] } } }} Page
 */
export default {
  names: ['prose-fill'],
  description: 'Lines of prose are filled',
  tags: ['line_length'],
  parser: 'micromark',
  /** @param {Page} page @param {(problem: object) => void} onError */
  function: ({ lines, parsers }, onError) => {
    for (const { startLine, endLine, startColumn } of paragraphsIn(parsers.micromark.tokens)) {
      const before = lines.slice(startLine - 1, endLine);
      const after = filled(before, startColumn - 1);
      if (before.some((line) => HARD_BREAK.test(line)) || after.join('\n') === before.join('\n')) continue;
      const fixed = [after.slice(0, before.length - 1), after.slice(before.length - 1)].flatMap((part, index) =>
        index === 0 ? part : [part.join('\n')],
      );
      for (const [index, line] of before.entries()) {
        const insertText = fixed[index];
        const deleteCount = insertText ? line.length : -1; // -1 removes the line
        onError({
          lineNumber: startLine + index,
          fixInfo: { editColumn: 1, deleteCount, insertText: insertText ?? '' },
        });
      }
    }
  },
};

const LINE_WIDTH_CHARACTERS = 120;
const HARD_BREAK = /( {2}|\\|<br>)$/;
/** What would begin a list, a heading, a quotation or a table at the start of a line. */
const MARKUP = /^([-+*]|#+|>.*|\d+[.)]|\|.*)$/;
/** Code and links stay on one line, with the characters that touch them. */
const PIECE = /(?:`+[^`]*`+|!?\[[^\]]*\](?:\([^)]*\))?|\S)+/g;

/** @param {Token[]} tokens @returns {Token[]} */
function paragraphsIn(tokens) {
  return tokens.flatMap((token) => (token.type === 'paragraph' ? [token] : paragraphsIn(token.children)));
}

/** @param {string[]} lines of a paragraph @param {number} start where its text begins in the first line */
function filled(lines, start) {
  const [first = '', second] = lines;
  const indent = second?.match(/^[\s>]*/)?.[0] ?? first.slice(0, start).replace(/[^>]/g, ' ');
  const text = [first.slice(start), ...lines.slice(1).map((line) => line.replace(/^[\s>]*/, ''))].join(' ');
  const result = [];
  let line = first.slice(0, start);
  let isEmpty = true;
  for (const word of text.match(PIECE) ?? []) {
    if (isEmpty) line += word;
    else if (line.length + 1 + word.length <= LINE_WIDTH_CHARACTERS || MARKUP.test(word)) line += ` ${word}`;
    else {
      result.push(line);
      line = indent + word;
    }
    isEmpty = false;
  }
  return [...result, line];
}
