import { existsSync } from 'node:fs';

/** The build copies Swagger UI into this folder (scripts/build.js). */
const BUILT = new URL('swagger-ui/', import.meta.url);

/**
 * The URL of a file of Swagger UI. The sources, which tests run, use the development package. The built service has its
 * own copy instead of a dependency, because the package brings @scarf/scarf, which reports each installation.
 */
export function swaggerUiFile(name: string): string {
  return existsSync(BUILT) ? new URL(name, BUILT).href : import.meta.resolve(`swagger-ui-dist/${name}`);
}
