import { Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { type Route, routesOf } from '../../http/routes/declared-routes.js';
import { ErrorBody } from '../../oauth/error-body.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import type { DeclaredListener, ListenerName } from '../../platform/http/listener.decorators.js';
import { servedListener } from '../../platform/http/service-http-adapter.js';
import { VERSION } from '../../platform/version.js';
import { GrantRegistry } from '../../token/grant-registry.js';
import { ERROR_RESPONSES } from './errors.js';
import { grantComponents } from './grant-schemas.js';
import { type Operation, operationOf, SECURITY_SCHEMES } from './operation.js';
import { responseSchemaOf, type Schema } from './schemas.js';
import { TAGS } from './tags.js';

/** The ports that serve a path. The other properties are its operations, by their methods. */
type PathItem = Schema & { servers: Schema[] };

const DESCRIPTION = `Creates customer identities and issues, transfers and refreshes customer access tokens.

A slash at the end of a path does not change the path. Each route with a JSON body reads JSON under every
\`Content-Type\`. Undeclared parameters of a body are ignored. Every error response has the same fields.`;

const TRY_IT_PATH = /^\/try(\/|$)/;

/** The OpenAPI 3.1 document from controllers, guards and body classes. The management port's has all routes. */
@Injectable()
export class OpenApiDocument {
  private readonly texts = new Map<DeclaredListener, string>();

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly grants: GrantRegistry,
    private readonly configuration: Configuration,
  ) {}

  /** Written once, because the public port has no limit for its requests. */
  text(port: DeclaredListener): string {
    const text = this.texts.get(port) ?? JSON.stringify(this.build(port));
    this.texts.set(port, text);
    return text;
  }

  /** The document as an object. It shares its schemas with other documents, so do not change it. */
  build(port: DeclaredListener): Schema {
    const servers: Record<DeclaredListener, Schema> = {
      public: { url: this.configuration.AUTH_URL, description: 'Public port' },
      management: { url: '/', description: 'Management port' },
    };
    const listeners: DeclaredListener[] = port === 'public' ? ['public'] : ['public', 'management'];
    const grants = this.grants.all();
    const paths: Record<string, PathItem> = {};
    for (const listener of listeners) {
      for (const route of this.routes(listener)) {
        const item = paths[route.path] ?? { servers: [] };
        if (!item.servers.includes(servers[listener])) item.servers.push(servers[listener]);
        // a route of both ports may have more fields in its response on the management port, which comes last
        item[route.method] = operationOf(route, grants);
        paths[route.path] = item;
      }
    }
    const operations = Object.values(paths).flatMap(({ servers: _, ...each }) => Object.values(each) as Operation[]);
    return {
      openapi: '3.1.0',
      info: { title: 'Customer Authorization Service', version: VERSION, description: DESCRIPTION },
      servers: [servers.public],
      tags: tagsOf(operations),
      paths,
      components: {
        schemas: { Error: responseSchemaOf(ErrorBody), ...grantComponents(grants) },
        responses: usedParts(ERROR_RESPONSES, operations.flatMap(responsesOf)),
        securitySchemes: usedParts(SECURITY_SCHEMES, operations.flatMap(schemesOf)),
      },
    };
  }

  private isServed(listener: DeclaredListener, path: string): boolean {
    const ports: ListenerName[] = [listener, 'admin'];
    return ports.some((port) => servedListener(port, path, this.configuration) === listener);
  }

  /** The routes that a port serves with this configuration. Those of the pages that try the service come last. */
  private routes(port: DeclaredListener): Route[] {
    const served = routesOf(this.discovery).filter(
      ({ listener, path, description }) =>
        listener === port && !description.isPageFile && this.isServed(listener, path),
    );
    const forTrials = served.filter(({ path }) => TRY_IT_PATH.test(path));
    return [...served.filter((route) => !forTrials.includes(route)), ...forTrials];
  }
}

function tagsOf(operations: Operation[]): Schema[] {
  const used = new Set(operations.flatMap(({ tags }) => tags));
  return TAGS.filter(({ name }) => used.has(name)).map(({ name, description }) => ({ name, description }));
}

/** The names of the shared responses that an operation refers to. */
function responsesOf({ responses }: Operation): string[] {
  return Object.values(responses).flatMap(({ $ref }) => (typeof $ref === 'string' ? [$ref.replace(/.*\//, '')] : []));
}

function schemesOf({ security }: Operation): string[] {
  return security.flatMap((schemes) => Object.keys(schemes));
}

function usedParts(parts: Record<string, Schema>, names: string[]): Record<string, Schema> {
  const used = new Set(names);
  return Object.fromEntries(Object.entries(parts).filter(([name]) => used.has(name)));
}
