import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../../../scripts/free-port.js';
import { findProgram } from '../../../scripts/programs.js';
import { AgentBrowser, redirected } from '../../support/authorization-page.js';
import { useDatabase } from '../../support/databases.js';
import { blocksOf, differenceFrom, shellScriptOf, shownOutputs } from '../../support/page-blocks.js';
import { runScript, type ServiceProcess, START, startServiceProcess } from '../../support/processes.js';
import { read } from '../../support/project-files.js';

/** The URL in the pages. The service of a test has another port. */
const DEMO_URL = 'http://localhost:3000';

const guides = readdirSync('docs/integrating').map((name) => `docs/integrating/${name}`);
/** The commands of this page show the feed of a service on which no token has ended, so they run first. */
const PAGE_WITH_FEED = 'docs/integrating/verify-in-any-language.md';
const pages = [PAGE_WITH_FEED, ...guides.filter((page) => page !== PAGE_WITH_FEED), 'docs/llms.txt'];
const pagesWithCommands = pages.filter((page) => shellScriptOf(page) !== '');

describe.runIf(findProgram(['curl']))('the pages for callers and README.md', () => {
  const database = useDatabase();
  /** The service with the demo registry, as `npm start` starts it. */
  let demo: ServiceProcess;
  /** The URL for commands, whose host is in the demo registry. */
  let url: string;
  /** The folder of the demo registry and the signing keys. */
  let dataFolder: string;
  let environment: NodeJS.ProcessEnv;
  beforeAll(async () => {
    dataFolder = join(database.folder, 'var');
    const usual = { DATA_DIR: dataFolder, AUTH_URL: DEMO_URL };
    environment = { ...process.env, ...usual };
    demo = await startServiceProcess(usual, undefined, START);
    url = demo.url.replace('127.0.0.1', 'localhost');
  });
  afterAll(() => demo?.terminate());

  /** Runs the shell blocks of a page as one script, with a fresh authorization code as the input of the user. */
  async function outputOf(page: string): Promise<string> {
    const portOfApi = await freePort();
    const script = shellScriptOf(page)
      .replaceAll('SERVICE=http://localhost:3000', `SERVICE=${url}`)
      .replaceAll('MANAGEMENT=http://localhost:3001', `MANAGEMENT=${demo.managementUrl}`)
      .replaceAll('PORT=9000', `PORT=${portOfApi}`)
      .replaceAll('API=http://localhost:9000', `API=http://127.0.0.1:${portOfApi}`)
      .replaceAll('var/demo-registry.yaml', join(dataFolder, 'demo-registry.yaml'))
      .replaceAll(/(?<![\w/-])([\w-]+\.(?:cookies|json|pem))\b/g, join(database.folder, '$1'));
    const input = script.includes('read -r CODE') ? `${await signInAsBackend(page)}\n` : '';
    return runScript(script, { env: environment, input });
  }

  /** Signs in at the link of a page, as a person does in a browser. Returns the code of the redirect. */
  async function signInAsBackend(page: string): Promise<string> {
    const { agents } = parse(readFileSync(join(dataFolder, 'demo-registry.yaml'), 'utf8'));
    const [{ email, password }] = agents.filter((agent: { email: string }) => agent.email.startsWith('backend@'));
    const browser = new AgentBrowser({ url: demo.url });
    const [link = ''] = /http:\S+response_type=code[^\s>]+/.exec(read(page)) ?? [];
    const form = await browser.open(Object.fromEntries(new URL(link).searchParams));
    const signedIn = await browser.submit(form, { email, password }, undefined, { origin: DEMO_URL });
    return redirected(await browser.follow(signedIn)).parameters.code as string;
  }

  it.each(pagesWithCommands)(
    '%s: the commands work when pasted, and have the output that the page shows',
    async (page) => {
      const outputs = shownOutputs(page, await outputOf(page));
      for (const { language, shown, actual } of outputs) {
        if (language === 'text') expect(differenceFrom(shown, actual)).toBe('');
        else expect(differenceFrom(JSON.parse(shown), JSON.parse(actual)), shown).toBe('');
      }
    },
  );

  it.each(pages)('%s: every code block is a command, its output, a diagram or a file that a test runs', (page) => {
    const blocks = blocksOf(page);
    for (const { language, file } of blocks) {
      if (file === '') expect(['sh', 'json', 'text', 'mermaid']).toContain(language);
      else expect(file).toMatch(/^examples\/integrating\//);
    }
    const fences = read(page).match(/^ *(`{3,}|~{3,})/gm) ?? [];
    expect(blocks.length).toBeGreaterThan(0);
    expect(fences.length).toBe(2 * blocks.length); // a block without a language, or in a list, would not be run
  });

  it('get a first token with the command in README.md', async () => {
    const fields = ['access_token', 'entity_id', 'expires_in', 'organization_id', 'token_type'];
    const commands = blocksOf('README.md').flatMap(({ language, text }) => (language === 'sh' ? [text] : []));
    const stdout = await runScript(commands.join('').replaceAll(DEMO_URL, url), { env: environment });
    expect(Object.keys(JSON.parse(stdout)).sort()).toEqual(fields);
  });

  it.each<[string, NodeJS.Signals, number]>([
    ['npm gets SIGTERM', 'SIGTERM', 1],
    ['Ctrl-C sends SIGINT to npm and to the service', 'SIGINT', -1], // the processes of the group
  ])('start a service by npm start that stops when %s', async (_, signal, sign) => {
    const env = { ...environment, DATA_DIR: join(database.folder, 'npm'), PORT: '0', AUTH_URL: '' };
    const npm = spawn('npm', ['start'], { env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
    let [stdout, url] = ['', ''];
    for await (const text of npm.stdout.setEncoding('utf8')) {
      stdout += text;
      if (url) continue;
      [url = ''] = /http:\/\/localhost:\d+\/try/.exec(stdout) ?? [];
      if (url) process.kill(sign * (npm.pid as number), signal);
    }
    // the service held its output open until it ended
    await expect(fetch(url)).rejects.toThrow('fetch failed');
    if (npm.exitCode === null) await once(npm, 'exit');
    expect(npm.exitCode).toBe(0);
  });
});
