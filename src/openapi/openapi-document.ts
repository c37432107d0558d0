import { Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { Configuration } from '../platform/configuration/configuration.js';
import type { Surface } from '../platform/http/surfaces.js';
import { GrantRegistry } from '../token/grant-registry.js';
import { errorComponent, errorResponseComponents } from './error-responses.js';
import { grantComponents } from './grant-schemas.js';
import { operationOf, SECURITY_SCHEMES } from './operation.js';
import { routesOf } from './routes.js';
import type { Schema } from './schemas.js';

/** Generates the OpenAPI 3.1 document of both ports, from the controllers, guards and body classes. */
@Injectable()
export class OpenApiDocument {
  private document: Schema | undefined;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly grants: GrantRegistry,
    private readonly configuration: Configuration,
  ) {}

  /** The document. It is built at the first request, and does not change while the process runs. */
  read(): Schema {
    this.document ??= this.build();
    return this.document;
  }

  private build(): Schema {
    const servers: Record<Surface, Schema[]> = {
      public: [{ url: this.configuration.AUTH_URL, description: 'Public port' }],
      management: [{ url: '/', description: 'Management port' }],
    };
    const grants = this.grants.all();
    const paths: Record<string, Schema> = {};
    for (const route of routesOf(this.discovery)) {
      const { surface, path, method } = route;
      paths[path] = { servers: servers[surface], ...paths[path], [method]: operationOf(route, grants) };
    }
    return {
      openapi: '3.1.0',
      info: {
        title: 'Customer Authorization Service',
        version: '2',
        description: 'Creates customer identities and issues, transfers and refreshes customer access tokens.',
      },
      servers: servers.public,
      tags: [
        { name: 'public', description: 'Routes for browsers, applications and backends' },
        { name: 'management', description: 'Routes for the cluster and the operator' },
      ],
      paths,
      components: {
        schemas: { ...errorComponent(), ...grantComponents(grants) },
        responses: errorResponseComponents(),
        securitySchemes: SECURITY_SCHEMES,
      },
    };
  }
}
