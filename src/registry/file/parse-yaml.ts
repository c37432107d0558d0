import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { PlainDocument, WorkerMessage } from './yaml-document.js';
import { parseYaml, RegistryTextError } from './yaml-document.js';

/** Parsing a shorter text takes less time than starting a thread. */
const MIN_WORKER_CHARACTERS = 50_000;

const WORKER = new URL('./yaml-worker.js', import.meta.url);

/**
 * Parses the text of a registry file. A long text is parsed in a thread of its own, so that the process serves requests
 * meanwhile. Its lists arrive in portions for the same reason.
 *
 * @throws RegistryTextError
 */
export async function parseRegistryText(text: string): Promise<PlainDocument> {
  // without the compiled program of the thread, as in tests that run the sources
  if (text.length < MIN_WORKER_CHARACTERS || !existsSync(WORKER)) return parseYaml(text);
  const worker = new Worker(WORKER, { workerData: text });
  try {
    return await documentOf(worker);
  } finally {
    await worker.terminate();
  }
}

function documentOf(worker: Worker): Promise<PlainDocument> {
  let document: PlainDocument = {};
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('the thread that parses the registry file ended')));
    worker.on('message', (message: WorkerMessage) => {
      if ('violations' in message) reject(new RegistryTextError(message.violations));
      if ('fields' in message) Object.assign(document, message.fields);
      if ('list' in message) document[message.list] = appended(document[message.list], message.items);
      if ('restart' in message) document = {};
      if ('isDone' in message) resolve(document);
    });
  });
}

function appended(list: unknown, items: unknown[]): unknown[] {
  if (!Array.isArray(list)) return items;
  list.push(...items);
  return list;
}
