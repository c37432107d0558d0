import type { Express } from 'express';

/** The part of Express' router that contains the routes. */
interface Layer {
  match(path: string): boolean;
  route?: { methods: Record<string, boolean | undefined> };
}

/** The methods of the application's routes for a path, in upper case. Empty if no route matches the path. */
export function allowedMethods(application: Express, path: string): string[] {
  const layers = (application as unknown as { router: { stack: Layer[] } }).router.stack;
  const methods = layers
    .filter((layer) => layer.route !== undefined && matches(layer, path))
    .flatMap((layer) => Object.keys(layer.route?.methods ?? {}));
  return [...new Set(methods)].map((method) => method.toUpperCase());
}

function matches(layer: Layer, path: string): boolean {
  try {
    return layer.match(path);
  } catch {
    return false; // a path with invalid percent-encoding matches no route
  }
}
