/** The program of the thread that parses a long registry file (yaml-document.ts). */
import { parentPort, workerData } from 'node:worker_threads';
import { type PlainDocument, parseYaml, RegistryTextError, type WorkerMessage, yamlPortions } from './yaml-document.js';

const ITEMS_PER_MESSAGE = 250;

try {
  const isSent = sendPortions(workerData);
  if (!isSent) {
    send({ restart: true });
    sendDocument(parseYaml(workerData));
  }
  send({ isDone: true });
} catch (error) {
  if (!(error instanceof RegistryTextError)) throw error;
  send({ violations: error.violations });
}

/** Whether the text could be parsed in portions. If not, some of its portions may have been sent. */
function sendPortions(text: string): boolean {
  const portions = yamlPortions(text);
  try {
    for (const { list, lines, itemCount } of portions ?? []) {
      const document = parseYaml(lines.join('\n'));
      const items = list === undefined ? undefined : document[list];
      if (Array.isArray(items) && items.length !== itemCount) return false;
      sendDocument(document);
    }
    return portions !== undefined;
  } catch {
    return false; // the errors of the whole text have the right lines
  }
}

/** Sends the items of lists in portions. */
function sendDocument(document: PlainDocument): void {
  for (const [name, value] of Object.entries(document)) {
    if (!Array.isArray(value)) send({ fields: { [name]: value } });
    else {
      for (let first = 0; first === 0 || first < value.length; first += ITEMS_PER_MESSAGE) {
        send({ list: name, items: value.slice(first, first + ITEMS_PER_MESSAGE) });
      }
    }
  }
}

function send(message: WorkerMessage): void {
  parentPort?.postMessage(message);
}
