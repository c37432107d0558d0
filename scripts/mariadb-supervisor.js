// @ts-check
// Runs one private mariadbd for mariadb.js: node mariadb-supervisor.js DIR MARIADBD [OPTION…]
// SIGUSR2 kills the server as a crash does. A line on stdin stops it in the regular way. The next SIGUSR2 starts it again
// with the data that is left.
// The supervisor ends soon after its parent process, because the kernel then closes the pipe to its stdin. It kills the
// server and removes DIR before it ends.
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
  '--force', // also if the machine's host name does not resolve
  '--skip-name-resolve',
  '--skip-test-db',
  '--innodb-log-file-size=16M', // small, because each server copies this file
  '--loose-debug-no-sync',
];

// The listeners come first, so that the supervisor also ends if its parent ends during the start.
process.once('exit', () => remove(dir));
process.stdin.on('error', end).on('close', end).on('data', shutDown);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, end);

const template = templateFolder();
process.once('exit', (code) => code !== 0 && remove(template)); // it may be damaged, and the next run creates another
if (!existsSync(template)) createTemplate();
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

function shutDown() {
  isDown = true;
  server.kill('SIGTERM');
}

function end() {
  if (isDown) process.exit(0);
  server.kill('SIGKILL');
}

/** The path of an empty data folder for this mariadbd. Each server starts from a copy of this folder. */
function templateFolder() {
  const origin = [mariadbd, statSync(mariadbd).mtimeMs, process.getuid?.(), TEMPLATE_OPTIONS];
  const key = createHash('sha256').update(JSON.stringify(origin)).digest('hex').slice(0, 16);
  return join(cacheFolder(), `mariadb-template-${key}`);
}

/** The user's cache folder. If it is not writable, the server's own folder, which is not shared with later runs. */
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

/** Creates the template under another name and renames it, so that no other run uses an incomplete template. */
function createTemplate() {
  const draft = mkdtempSync(`${template}.`);
  try {
    execFileSync('mariadb-install-db', [...TEMPLATE_OPTIONS, `--datadir=${draft}`], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    renameSync(draft, template);
  } catch (error) {
    remove(draft);
    if (!existsSync(template)) throw error; // if it exists, another run has created it meanwhile
  }
}

/** @param {string} folder */
function remove(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
