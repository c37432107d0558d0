import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../../../scripts/free-port.js';
import { AgentBrowser, redirected } from '../../support/authorization-page.js';
import { canRunPages, DEMO_URL, DemoService } from '../../support/demo-service.js';
import { blocksOf, differenceFrom, readPage, shellScriptOf, shownOutputs } from '../../support/page-blocks.js';

/** Its commands have a test of their own, in readme.e2e-spec.ts. */
const WALKTHROUGH = 'docs/integrating/walkthrough.md';
const guides = readdirSync('docs/integrating')
  .map((name) => `docs/integrating/${name}`)
  .filter((page) => page !== WALKTHROUGH);
/** The commands of this page show the feed of a service on which no token has ended, so they run first. */
const PAGE_WITH_FEED = 'docs/integrating/resource-server.md';
const pages = [PAGE_WITH_FEED, ...guides.filter((page) => page !== PAGE_WITH_FEED), 'docs/llms.txt'];

describe.runIf(canRunPages)('the pages for callers', () => {
  const service = new DemoService();

  /** Runs the shell blocks of a page as one script, with a fresh authorization code as the input of the user. */
  async function outputOf(page: string): Promise<string> {
    const portOfApi = await freePort();
    const script = shellScriptOf(page)
      .replaceAll('SERVICE=http://localhost:3000', `SERVICE=${service.url}`)
      .replaceAll('MANAGEMENT=http://localhost:3001', `MANAGEMENT=${service.process.managementUrl}`)
      .replaceAll('PORT=9000', `PORT=${portOfApi}`)
      .replaceAll('API=http://localhost:9000', `API=http://127.0.0.1:${portOfApi}`)
      .replaceAll('var/demo-registry.yaml', join(service.dataFolder, 'demo-registry.yaml'))
      .replaceAll(/(?<![\w/-])([\w-]+\.(?:cookies|json|pem))\b/g, join(service.database.folder, '$1'));
    const input = script.includes('read -r') ? `${await signInAsBackend(script)}\n` : '';
    return new Promise((resolve, reject) => {
      const child = execFile(
        'bash',
        ['-euo', 'pipefail', '-c', script],
        { env: service.environment },
        (error, stdout, stderr) =>
          error ? reject(new Error(`${error.message}\n${stdout}\n${stderr}`)) : resolve(stdout),
      );
      child.stdin?.end(input);
    });
  }

  /** Signs in as the agent of the backend, as a person does in a browser. Returns the code of the redirect. */
  async function signInAsBackend(script: string): Promise<string> {
    const { agents } = parse(readFileSync(join(service.dataFolder, 'demo-registry.yaml'), 'utf8'));
    const [{ email, password }] = agents.filter((agent: { email: string }) => agent.email.startsWith('backend@'));
    const browser = new AgentBrowser({ url: service.process.url });
    const [link = ''] = /http:\S+response_type=code[^\s>]+/.exec(readPage('docs/integrating/backend.md')) ?? [];
    const { searchParams } = new URL(link);
    const [, callback] = /^REDIRECT_URI=(\S+)/m.exec(script) ?? [];
    if (callback) searchParams.set('redirect_uri', callback);
    const form = await browser.open(Object.fromEntries(searchParams));
    const signedIn = await browser.submit(form, { email, password }, undefined, { origin: DEMO_URL });
    const response = await browser.send('GET', signedIn.headers.get('location') as string);
    const page = response.headers.get('location')?.replace(DEMO_URL, service.url) as string;
    if (!callback) expect((await fetch(page)).status).toBe(200);
    return redirected(response).parameters.code as string;
  }

  it.each(pages)('%s: the commands work when pasted, and have the output that the page shows', async (page) => {
    const outputs = shownOutputs(page, await outputOf(page));
    for (const { language, shown, actual } of outputs) {
      if (language === 'text') expect(differenceFrom(shown, actual)).toBe('');
      else expect(differenceFrom(JSON.parse(shown), JSON.parse(actual)), shown).toBe('');
    }
  });

  it.each([...pages, WALKTHROUGH])(
    '%s: every code block is a command, its output, a diagram or a file that a test runs',
    (page) => {
      const blocks = blocksOf(page);
      for (const { language, file } of blocks) {
        if (file === '') expect(['sh', 'json', 'text', 'mermaid']).toContain(language);
        else expect(file).toMatch(/^examples\/integrating\//);
      }
      const fences = readPage(page).match(/^ *(`{3,}|~{3,})/gm) ?? [];
      expect(blocks.length).toBeGreaterThan(0);
      expect(fences.length).toBe(2 * blocks.length); // a block without a language, or in a list, would not be run
    },
  );
});
