import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { BROWSER_NAME } from './browser-launch.js';

/** A folder for screenshots of all pages, for manual review. */
export const SCREENSHOTS = process.env.SCREENSHOTS;

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 320, height: 640 };

/** The rules of axe whose result depends on the colors, and those whose result depends on the width. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block'];
const LAYOUT_RULES = ['target-size', 'scrollable-region-focusable'];

/**
 * The rules of axe for each window: all of them once, and in the dark and in a narrow window those whose result can
 * differ. A narrow window can move text onto another background, so the rules of colors run there, too.
 */
const WINDOWS = [
  { viewport: NARROW, colorScheme: 'light', rules: [...LAYOUT_RULES, ...COLOR_RULES] },
  { viewport: NARROW, colorScheme: 'dark', rules: COLOR_RULES },
  { viewport: WIDE, colorScheme: 'dark', rules: COLOR_RULES },
  { viewport: WIDE, colorScheme: 'light', rules: undefined },
] as const;

interface AxeResult {
  id: string;
  nodes: { html: string; any: { message: string }[] }[];
}

/** The ids and tags of elements that need a horizontal scroll bar, or that their own card cuts off. */
const TOO_WIDE = `[document.documentElement, ...document.querySelectorAll('.step, main')]
  .filter((element) => element.scrollWidth > element.clientWidth)
  .map((element) => element.id || element.firstElementChild.id || element.tagName + '.' + element.className)`;

/** Checks what axe finds, and that a window of 320 or 1280 px needs no horizontal scroll bar. */
export async function expectAccessible(page: Page, name: string): Promise<void> {
  await page.evaluate(axe.source);
  for (const { viewport, colorScheme, rules } of WINDOWS) {
    if (colorScheme === 'dark' && BROWSER_NAME === 'firefox') continue; // WebDriver BiDi cannot change the colors
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    const window = `${name}, ${colorScheme}, ${viewport.width} px`;
    expect({ window, problems: await problemsIn(page, viewport, rules) }).toEqual({ window, problems: [] });
    expect({ window, tooWide: await page.evaluate(TOO_WIDE) }).toEqual({ window, tooWide: [] });
    if (SCREENSHOTS === undefined) continue;
    mkdirSync(SCREENSHOTS, { recursive: true });
    const path = join(SCREENSHOTS, `${BROWSER_NAME}-${name}-${colorScheme}-${viewport.width}.png`);
    await page.screenshot({ path, fullPage: true });
  }
}

/**
 * The violations, and the elements that axe cannot judge. In a narrow window, axe cannot judge the colors of text that
 * the reader scrolls into view: the wide window shows this text.
 */
async function problemsIn(page: Page, viewport: typeof WIDE, rules: readonly string[] | undefined): Promise<string[]> {
  const options = rules ? { runOnly: rules } : { rules: { 'target-size': { enabled: true } } }; // off by default
  const run = `axe.run(${JSON.stringify(options)})`;
  const { violations, incomplete } = await page.evaluate<Record<'violations' | 'incomplete', AxeResult[]>>(run);
  const unclear = incomplete.filter(({ id }) => viewport === WIDE || !COLOR_RULES.includes(id));
  return [...violations, ...unclear].map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.any[0]?.message}`);
}
