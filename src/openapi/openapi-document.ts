import { readFileSync } from 'node:fs';
import { Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { ErrorBody } from '../oauth/error-body.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { type Port, type Surface, servedSurface } from '../platform/http/surfaces.js';
import { type Route, routesOf } from '../routes/declared-routes.js';
import { GrantRegistry } from '../token/grant-registry.js';
import { ErrorComponents } from './errors.js';
import { grantComponents } from './grant-schemas.js';
import { operationOf, SECURITY_SCHEMES } from './operation.js';
import { responseSchemaOf, type Schema } from './schemas.js';

/** The operations of a path by their methods, and the ports that serve the path. */
type PathItem = Schema & { servers: Schema[] };

const VERSION: string = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;

const DESCRIPTION = `Creates customer identities and issues, transfers and refreshes customer access tokens.

A slash at the end of a path does not change the path. Each route with a JSON body reads JSON under every
\`Content-Type\`. Undeclared parameters of a body are ignored. Every error response has the same fields.`;

const TRY_IT_PATH = /^\/try(\/|$)/;

const TAGS: Record<Surface, string> = {
  public: 'Routes for browsers, applications and backends',
  management: 'Routes for the cluster and the operator',
};

/** The OpenAPI 3.1 document from controllers, guards and body classes. The management port's has all routes. */
@Injectable()
export class OpenApiDocument {
  private readonly texts = new Map<Surface, string>();

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly grants: GrantRegistry,
    private readonly configuration: Configuration,
  ) {}

  read(port: Surface = 'management'): Schema {
    return JSON.parse(this.text(port));
  }

  /** Written once, because the public port has no limit for its requests. */
  text(port: Surface): string {
    const text = this.texts.get(port) ?? JSON.stringify(this.build(port));
    this.texts.set(port, text);
    return text;
  }

  private build(port: Surface): Schema {
    const servers: Record<Surface, Schema> = {
      public: { url: this.configuration.AUTH_URL, description: 'Public port' },
      management: { url: '/', description: 'Management port' },
    };
    const surfaces: Surface[] = port === 'public' ? ['public'] : ['public', 'management'];
    const grants = this.grants.all();
    const paths: Record<string, PathItem> = {};
    const errors = new ErrorComponents();
    for (const surface of surfaces) {
      for (const route of this.routes(surface)) {
        const item = paths[route.path] ?? { servers: [] };
        if (!item.servers.includes(servers[surface])) item.servers.push(servers[surface]);
        // a route of both ports may have more fields in its response on the management port, which comes last
        item[route.method] = operationOf(route, grants, errors);
        paths[route.path] = item;
      }
    }
    return {
      openapi: '3.1.0',
      info: { title: 'Customer Authorization Service', version: VERSION, description: DESCRIPTION },
      servers: [servers.public],
      tags: surfaces.map((name) => ({ name, description: TAGS[name] })),
      paths,
      components: {
        schemas: { Error: responseSchemaOf(ErrorBody), ...grantComponents(grants) },
        responses: errors.responses,
        examples: errors.examples,
        securitySchemes: securitySchemesOf(paths),
      },
    };
  }

  private isServed(surface: Surface, path: string): boolean {
    const ports: Port[] = [surface, 'admin'];
    return ports.some((port) => servedSurface(port, path, this.configuration) === surface);
  }

  /** The routes that a port serves with this configuration. Those of the pages that try the service come last. */
  private routes(port: Surface): Route[] {
    const served = routesOf(this.discovery).filter(
      ({ surface, path }) => surface === port && this.isServed(surface, path),
    );
    const forTrials = served.filter(({ path }) => TRY_IT_PATH.test(path));
    return [...served.filter((route) => !forTrials.includes(route)), ...forTrials];
  }
}

function securitySchemesOf(paths: Record<string, PathItem>): Schema {
  const operations = Object.values(paths).flatMap(({ servers, ...methods }) => Object.values(methods) as Schema[]);
  const names = operations.flatMap(({ security }) => (security as Schema[]).flatMap(Object.keys));
  return Object.fromEntries(Object.entries(SECURITY_SCHEMES).filter(([name]) => names.includes(name)));
}
