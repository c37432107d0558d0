import { join } from 'node:path';

const EXAMPLES = join(import.meta.dirname, '../../examples/integrating');

/** Imports a file of the integration guides, by its path in examples/integrating. */
// biome-ignore lint/suspicious/noExplicitAny: the examples are JavaScript without types
export const loadExample = (path: string): Promise<any> => import(join(EXAMPLES, path));
