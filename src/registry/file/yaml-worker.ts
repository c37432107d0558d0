/** The program of the thread that parses a long registry file (yaml-document.ts). */
import { parentPort, workerData } from 'node:worker_threads';
import { parseYaml, RegistryFileError, type WorkerMessage } from './yaml-document.js';

try {
  send({ document: parseYaml(workerData) });
} catch (error) {
  if (!(error instanceof RegistryFileError)) throw error;
  send({ violations: error.violations });
}

function send(message: WorkerMessage): void {
  parentPort?.postMessage(message);
}
