/** The program of the thread that parses a long registry file (yaml-document.ts). */
import { serialize } from 'node:v8';
import { parentPort, workerData } from 'node:worker_threads';
import { parseInPortions, RegistryFileError, type WorkerMessage } from './yaml-document.js';

// the parser makes an error per wrong character, and its stack takes most of the time
Error.stackTraceLimit = 0;

try {
  send({ parts: parseInPortions(workerData).map((part) => serialize(part)) });
} catch (error) {
  if (!(error instanceof RegistryFileError)) throw error;
  send({ violations: error.violations });
}

function send(message: WorkerMessage): void {
  parentPort?.postMessage(message);
}
