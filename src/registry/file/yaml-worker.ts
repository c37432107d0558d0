/** The program of the thread that parses a long registry file (parse-yaml.ts). */
import { parentPort, workerData } from 'node:worker_threads';
import { parseYaml, RegistryTextError, type WorkerMessage } from './yaml-document.js';

const ITEMS_PER_MESSAGE = 250;

function send(message: WorkerMessage): void {
  parentPort?.postMessage(message);
}

try {
  const document = parseYaml(workerData);
  const lists = Object.entries(document).filter((field): field is [string, unknown[]] => Array.isArray(field[1]));
  send({ fields: { ...document, ...Object.fromEntries(lists.map(([name]) => [name, []])) } });
  for (const [list, items] of lists) {
    for (let first = 0; first < items.length; first += ITEMS_PER_MESSAGE) {
      send({ list, items: items.slice(first, first + ITEMS_PER_MESSAGE) });
    }
  }
  send({ isDone: true });
} catch (error) {
  if (!(error instanceof RegistryTextError)) throw error;
  send({ violations: error.violations });
}
