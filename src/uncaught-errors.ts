import { AsyncLocalStorage } from 'node:async_hooks';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DynamicModule, INestApplication, Type } from '@nestjs/common';
import { MODULE_METADATA } from '@nestjs/common/constants.js';
import { DiscoveryService, ModulesContainer } from '@nestjs/core';
import type { Counter } from 'prom-client';
import { routesOf } from './http/routes/declared-routes.js';
import { type Log, traceOf } from './platform/logging/log.js';
import { type RequestContext, requestContext } from './platform/request-context/request-context.js';
import { GrantRegistry } from './token/grant-registry.js';

type Import = Type | DynamicModule;

/** The code that an extension's hooks start, such as timers, runs in this context. */
const startedByExtension = new AsyncLocalStorage<true>();
const START_HOOKS = ['onModuleInit', 'onApplicationBootstrap'];

/**
 * Handles the rejections and exceptions that no code of the process has caught. One of an extension is logged and
 * counted, and ends nothing. One of the service itself ends the process after a log line, because its state is unknown.
 */
export class UncaughtErrors {
  private application: INestApplication | undefined;
  private readonly classes = new Set<unknown>();

  constructor(
    private readonly log: Log,
    private readonly errors: Counter<'package'>,
    private readonly isExtended: boolean,
  ) {
    process.on('unhandledRejection', (reason) => this.handle(reason, 'unhandled rejection'));
    process.on('uncaughtException', (error) => this.handle(error, 'uncaught exception'));
  }

  /**
   * Learns which classes are an extension's: those of all modules except the service's, however the extension imports
   * them. Their hooks have not run yet.
   */
  watch(application: INestApplication, modulesOfService: Import[]): void {
    this.application = application;
    const serviceModules = modulesIn(modulesOfService);
    for (const { metatype, providers, controllers } of application.get(ModulesContainer).values()) {
      if (serviceModules.has(metatype)) continue;
      for (const { instance } of [...providers.values(), ...controllers.values()]) {
        if (typeof instance !== 'object' || instance === null) continue;
        this.classes.add(instance.constructor);
        for (const hook of START_HOOKS) markStarted(instance, hook);
      }
    }
  }

  private handle(error: unknown, kind: string): void {
    const request = requestContext.current();
    const extension = this.extensionOf(error, request);
    const { id: request_id, method, matchedRoute: route = 'none', grant } = request ?? {};
    const line = { request_id, method, route, grant, cause: traceOf(error, true) };
    if (extension === undefined) {
      this.log.logger.fatal(line, `${kind} of the service: the process ends`);
      process.exit(1);
    }
    this.log.logger.error({ package: extension, ...line }, `${kind} of an extension`);
    this.errors.inc({ package: extension });
  }

  /** The package of the extension that an error belongs to; `undefined` if it is an error of the service. */
  private extensionOf(error: unknown, request: RequestContext | undefined): string | undefined {
    const files = filesOf(error);
    const extension = files.map(extensionPackageOf).find((name) => name !== undefined);
    if (extension !== undefined) return extension;
    const main = extensionPackageOf(process.argv[1] ?? '') ?? 'unknown';
    // the service and libraries reject promises that an extension does not await, so the stack may not name it
    if (startedByExtension.getStore() || (request && this.isOfExtension(request))) return main;
    // an interceptor or middleware of an extension also runs in requests to the routes of the service
    return !this.isExtended || files.some(isOfService) ? undefined : main;
  }

  private isOfExtension({ grant, method, matchedRoute }: RequestContext): boolean {
    if (!this.application) return false;
    const grants = this.application.get(GrantRegistry, { strict: false }).all();
    const requestedGrant = grants.find(({ name }) => name === grant); // none if the request is for an agent's token
    if (requestedGrant) return this.classes.has(requestedGrant.handler.constructor);
    const path = matchedRoute.replace(/:(\w+)/g, '{$1}');
    const routeMethod = method === 'HEAD' ? 'get' : method.toLowerCase();
    const routes = routesOf(this.application.get(DiscoveryService, { strict: false }));
    const requested = routes.find(
      (route) => route.method === routeMethod && route.path.replace(/(?<=.)\/$/, '') === path,
    );
    return this.classes.has(requested?.controller);
  }
}

function markStarted(instance: object, hook: string): void {
  const call = Reflect.get(instance, hook);
  if (typeof call === 'function')
    Reflect.set(instance, hook, () => startedByExtension.run(true, () => call.call(instance)));
}

/** The classes of modules, and of those that they import. */
function modulesIn(imports: Import[], classes = new Set<unknown>()): Set<unknown> {
  for (const imported of imports) {
    const { module, imports: dynamicImports = [] } = 'module' in imported ? imported : { module: imported };
    if (typeof module !== 'function' || classes.has(module)) continue;
    classes.add(module);
    modulesIn([...(Reflect.getMetadata(MODULE_METADATA.IMPORTS, module) ?? []), ...dynamicImports], classes);
  }
  return classes;
}

const SERVICE = dirname(import.meta.dirname);
const SERVICE_FOLDERS = ['dist', 'src'].map((folder) => join(SERVICE, folder) + sep);

const isOfService = (file: string): boolean => SERVICE_FOLDERS.some((folder) => file.startsWith(folder));

/** The files of the stack of an error, beginning with that which made the error. */
function filesOf(error: unknown): string[] {
  const { stack } = Object(error) as { stack?: unknown };
  const frames = String(stack).matchAll(/^ +at (?:.*[( ])?((?:file:\/\/)?\/[^()]*?):\d+:\d+\)?$/gm);
  return [...frames].map(([, file = '']) => (file.startsWith('file:') ? fileURLToPath(file) : file));
}

interface Manifest {
  name?: string;
  dependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

/** The package of an extension that a file belongs to; `undefined` for a file of the service or of a library. */
function extensionPackageOf(file: string): string | undefined {
  if (file === '' || isOfService(file)) return undefined;
  const { name, dependencies, peerDependencies } = manifestOf(dirname(file));
  const isExtension = SERVICE_NAME in { ...dependencies, ...peerDependencies };
  return isExtension || !file.includes(`${sep}node_modules${sep}`) ? (name ?? dirname(file)) : undefined;
}

/** The next `package.json` above with a name. */
function manifestOf(folder: string): Manifest {
  const path = join(folder, 'package.json');
  const manifest: Manifest = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
  return manifest.name !== undefined || dirname(folder) === folder ? manifest : manifestOf(dirname(folder));
}

const SERVICE_NAME = manifestOf(SERVICE).name as string;
