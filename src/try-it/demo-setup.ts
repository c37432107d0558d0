import { Injectable } from '@nestjs/common';
import { Configuration } from '../platform/configuration/configuration.js';
import { DEMO, signedInUrl } from '../registry/demo-registry.js';
import { Registry } from '../registry/registry.js';

/** Whether the registry is the demo registry, with which alone the try-it page works (protocol §11). */
@Injectable()
export class DemoSetup {
  constructor(
    private readonly registry: Registry,
    private readonly configuration: Configuration,
  ) {}

  /** What the registry lacks, as a sentence for the page; `undefined` if the page works with the registry. */
  problem(): string | undefined {
    const client = this.registry.client(DEMO.clientId);
    const organization = this.registry.organization(DEMO.organizationId);
    if (!client || !organization || client.organizationId !== DEMO.organizationId)
      return 'The registry of this service is not the demo registry.';
    const { AUTH_URL } = this.configuration;
    if (!client.redirectUris.includes(signedInUrl(AUTH_URL)) || client.grants.identity_token === undefined)
      return `The demo registry in ${this.configuration.DATA_DIR} was made by an older version, or for another AUTH_URL.`;
    return undefined;
  }
}
