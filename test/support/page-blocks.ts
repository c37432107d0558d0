import { read } from './project-files.js';

/** A fenced code block of a page. */
export interface PageBlock {
  language: string;
  /** The file that the block quotes, or '': ```ts src/main.ts */
  file: string;
  text: string;
}

/** The fenced code blocks of a page, in order. */
export function blocksOf(page: string): PageBlock[] {
  const fences = read(page).matchAll(/^```(\w+)(?: (\S+))?\n(.*?)^```$/gms);
  return Array.from(fences, ([, language = '', file = '', text = '']) => ({ language, file, text }));
}

/** The shell blocks of a section, without the indentation of a list. A heading has its marks: `## Runbook`. */
export function shellBlocksOf(page: string, heading: string): string[] {
  const [, text = ''] = read(page).split(`\n${heading}\n`);
  const [section = ''] = text.split(`\n${heading.split(' ')[0]} `);
  const blocks = section.matchAll(/^( *)```sh\n(.*?)^\1```$/gms);
  return Array.from(blocks, ([, indentation = '', lines = '']) =>
    lines.replaceAll(new RegExp(`^${indentation}`, 'gm'), ''),
  );
}

const NEXT_BLOCK = '--- next block ---';

/** The shell blocks of a page as one script, so that a block can use the variables of earlier ones. */
export function shellScriptOf(page: string): string {
  return blocksOf(page)
    .filter(({ language, file }) => language === 'sh' && file === '')
    .map(({ text }) => `${text}echo; echo '${NEXT_BLOCK}'\n`)
    .join('');
}

/** A block that shows the output of the shell block before it, and the actual output. */
export interface ShownOutput {
  language: string;
  shown: string;
  actual: string;
}

/** The `json` and `text` blocks of a page, each with the output of the shell block before it. */
export function shownOutputs(page: string, stdout: string): ShownOutput[] {
  const outputs = stdout.split(NEXT_BLOCK).map((output) => output.trim());
  const found: ShownOutput[] = [];
  let current = -1;
  for (const { language, file, text } of blocksOf(page)) {
    if (file !== '') continue;
    if (language === 'sh') current++;
    if (language === 'json' || language === 'text')
      found.push({ language, shown: text.trim(), actual: outputs[current] ?? '' });
  }
  return found;
}

/**
 * The first difference between a value and the one that a page shows, or ''. Both have the same fields. An `…` in a
 * text of the page means any characters. Numbers may differ, because lifetimes and times do.
 */
export function differenceFrom(shown: unknown, actual: unknown, path = '$'): string {
  if (typeof shown !== typeof actual) return `${path}: ${JSON.stringify(actual)} instead of ${JSON.stringify(shown)}`;
  if (typeof shown === 'number') return '';
  if (typeof shown === 'string') {
    const pattern = shown.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return new RegExp(`^${pattern.join('.*')}$`, 's').test(actual as string)
      ? ''
      : `${path}: ${actual} is not ${shown}`;
  }
  if (typeof shown !== 'object' || shown === null) return shown === actual ? '' : `${path}: ${actual} is not ${shown}`;
  const [expected, found] = [shown, actual].map((value) => Object.entries(value as object));
  const names = (entries: [string, unknown][] = []) =>
    entries
      .map(([name]) => name)
      .sort()
      .join(' ');
  if (names(expected) !== names(found)) return `${path}: ${names(found)} instead of ${names(expected)}`;
  for (const [name, value] of expected ?? []) {
    const difference = differenceFrom(value, (actual as Record<string, unknown>)[name], `${path}.${name}`);
    if (difference !== '') return difference;
  }
  return '';
}
