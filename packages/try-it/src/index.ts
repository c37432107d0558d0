/** Runs the customer authorization service with a demo registry and a page to try it, alone or with an extension. */

export { runTryIt } from './run-try-it.js';
export type { ExtensionPage } from './try-it.controller.js';
