// @ts-check
// Runs one private mariadbd for mariadb.js: node mariadb-supervisor.js DIR MARIADBD [OPTION…]
// SIGUSR2 kills the server as a crash does; the next SIGUSR2 starts it again on what the crash left.
// It outlives its starter only by the moment it takes to kill the server and remove DIR: however the starter ends, the
// kernel closes the pipe that is our stdin.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const [dir = '', mariadbd = '', ...options] = process.argv.slice(2);

const TEMPLATE_OPTIONS = [
  '--no-defaults',
  '--force', // whatever the machine's host name resolves to
  '--skip-name-resolve',
  '--skip-test-db',
  '--innodb-log-file-size=16M', // every server copies it
  '--loose-debug-no-sync',
];

// First of all: what comes in meanwhile waits until the server runs.
process.once('exit', () => remove(dir));
process.stdin.on('error', end).on('close', end).resume();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, end);

const template = templateFolder();
process.once('exit', (code) => code !== 0 && remove(template)); // it may be damaged, and the next run makes another
if (!existsSync(template)) makeTemplate();
cpSync(template, join(dir, 'data'), { recursive: true, mode: constants.COPYFILE_FICLONE });

let isDown = false;
let server = start();
process.on('SIGUSR2', () => {
  isDown = !isDown;
  if (isDown) server.kill('SIGKILL');
  else server = start();
});

function start() {
  const started = spawn(mariadbd, options, { stdio: ['ignore', 'inherit', 'inherit'] });
  started.once('exit', (code, signal) => {
    if (!isDown) process.exit(signal === 'SIGKILL' ? 0 : (code ?? 1));
  });
  return started;
}

function end() {
  if (isDown) process.exit(0);
  server.kill('SIGKILL');
}

/** Where this mariadbd's fresh data folder is kept, from which every server starts. */
function templateFolder() {
  const origin = [mariadbd, statSync(mariadbd).mtimeMs, process.getuid?.(), TEMPLATE_OPTIONS];
  const key = createHash('sha256').update(JSON.stringify(origin)).digest('hex').slice(0, 16);
  return join(cacheFolder(), `mariadb-template-${key}`);
}

/** The user's cache folder, or else the server's own, which saves nothing but works. */
function cacheFolder() {
  try {
    const folder = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
    if (!existsSync(folder)) mkdirSync(folder);
    accessSync(folder, constants.W_OK);
    return folder;
  } catch {
    return dir;
  }
}

/** Under another name first: nobody ever meets half a template. */
function makeTemplate() {
  const draft = mkdtempSync(`${template}.`);
  try {
    execFileSync('mariadb-install-db', [...TEMPLATE_OPTIONS, `--datadir=${draft}`], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    renameSync(draft, template);
  } catch (error) {
    remove(draft);
    if (!existsSync(template)) throw error; // else another run was quicker
  }
}

/** @param {string} folder */
function remove(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
