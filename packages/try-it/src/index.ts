/** Runs the customer authorization service with a demo registry and a page to try it. */

export { runTryIt } from './run-try-it.js';
