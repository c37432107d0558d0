/** Runs the customer authorization service with a demo registry and a page to try it, alone or with an extension. */

export type { ExtensionPage } from './extension-page.js';
export { runTryIt } from './run-try-it.js';
