// @ts-check
/**
 * `node scripts/screenshot.js`: runs `npm start` in an empty folder, follows the try-it page in Chromium, and writes
 * docs/try-it.png. With a folder as argument, it also writes all pages in light and dark mode and in 320 px there.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { freePort } from './free-port.js';
import { findChromium } from './test-programs.js';

const PROJECT = dirname(import.meta.dirname);
const README_SIZE = { width: 1280, height: 800 };
const START_TIMEOUT_MS = 20_000;
const POLL_INTERVAL_MS = 100;
/** @type {Record<string, import('playwright-core').BrowserContextOptions>} */
const WINDOWS = {
  light: { colorScheme: 'light', viewport: README_SIZE },
  dark: { colorScheme: 'dark', viewport: README_SIZE },
  narrow: { colorScheme: 'light', viewport: { width: 320, height: 640 } },
};

const folder = process.argv[2];
const data = mkdtempSync(join(tmpdir(), 'screenshot-'));
const url = `http://localhost:${await freePort()}`;
const service = startService();
const browser = await chromium.launch({ executablePath: String(findChromium()), chromiumSandbox: false });
try {
  await untilReady();
  if (folder) mkdirSync(folder, { recursive: true });
  for (const name of folder ? Object.keys(WINDOWS) : ['light']) {
    await follow(name);
    for (const context of browser.contexts()) await context.close();
  }
} finally {
  await browser.close();
  service.kill('SIGKILL');
  rmSync(data, { recursive: true, force: true });
}

function startService() {
  const { port } = new URL(url);
  const env = { PATH: process.env.PATH, DATA_DIR: join(data, 'var'), PORT: port };
  const start = join(import.meta.dirname, 'start.js');
  return spawn(process.execPath, [start], { env: { ...env, MANAGEMENT_PORT: '0', HOST: '127.0.0.1' }, cwd: data });
}

async function untilReady() {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline) {
    if (await fetch(`${url}/try`).then(({ ok }) => ok, () => false)) return; // biome-ignore format: one line
    await sleep(POLL_INTERVAL_MS);
  }
  throw new Error('the service did not start');
}

/** Follows the steps in one kind of window. @param {string} name */
async function follow(name) {
  const first = await openPage(name, '/try');
  await first.getByRole('button', { name: 'Get a token', exact: true }).click();
  await first.locator('#new-result p').waitFor();
  await first.getByRole('button', { name: 'Ask again' }).click();
  await first.locator('#returning-result p').waitFor();
  await first.evaluate('document.activeElement.blur(); scrollTo(0, 0)');
  if (name === 'light') await first.screenshot({ path: join(PROJECT, 'docs/try-it.png') });
  if (!folder) return;
  await first.getByText('Source of the token helper').click();
  await first.getByRole('button', { name: 'for the group' }).click();
  await first.getByRole('button', { name: 'Decode the token' }).click();
  await first.getByRole('button', { name: 'Get a token in the backend' }).click();
  await first.locator('#backend-result p').waitFor();
  await first.locator('#decode-result p').waitFor();
  const second = await openPage(name, '/try/second-browser');
  await first.getByLabel('Link of the second browser').fill(await second.locator('#ask-link .url').innerText());
  await first.getByRole('button', { name: 'Continue' }).click();
  await first.locator('#move').screenshot({ path: join(folder, `${name}-approval.png`) });
  await first.getByRole('button', { name: 'Allow' }).click();
  await second.getByLabel('Link of the first browser').fill(await first.locator('#code-link .url').innerText());
  await second.getByRole('button', { name: 'Continue' }).click();
  await second.locator('#redeem-result p').waitFor();
  await second.getByRole('button', { name: 'Get a token' }).click();
  await second.locator('#return-result p').waitFor();
  await second.screenshot({ path: join(folder, `${name}-second.png`), fullPage: true });
  await first.getByRole('button', { name: 'End this token' }).click();
  await first.locator('#end-result p').waitFor();
  await first.getByRole('button', { name: 'Forget this browser' }).click();
  await first.locator('#forget-result p').waitFor();
  await first.screenshot({ path: join(folder, `${name}-try.png`), fullPage: true });
  await first.getByRole('link', { name: 'Sign in as the agent' }).click();
  const registry = readFileSync(join(data, 'var/demo-registry.yaml'), 'utf8');
  await first.getByLabel('Email').fill('agent@acme.example');
  await first.getByLabel('Password').fill(/password: "?([^"\n]+)/.exec(registry)?.[1] ?? '');
  await first.getByRole('button', { name: 'Sign in' }).click();
  await first.getByRole('heading', { name: 'What it says' }).waitFor();
  await first.screenshot({ path: join(folder, `${name}-signed-in.png`), fullPage: true });
}

/** @param {string} name @param {string} path */
async function openPage(name, path) {
  const context = await browser.newContext(WINDOWS[name]);
  const page = await context.newPage();
  page.on('console', (message) => message.type() === 'error' && console.error(message.text()));
  await page.goto(url + path);
  return page;
}
