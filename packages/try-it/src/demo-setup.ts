import { readFileSync } from 'node:fs';
import { Configuration } from '@customer-authorization/service/grant';
import { Injectable } from '@nestjs/common';
import { parse } from 'yaml';
import { DEMO, type DemoEntries, signedInUrl } from './demo-registry.js';

/** Whether the registry file is a demo registry, with which alone the try-it page works (protocol §11). */
@Injectable()
export class DemoSetup {
  constructor(private readonly configuration: Configuration) {}

  /** What the registry lacks, as a sentence for the page; `undefined` if the page works with the registry. */
  problem(): string | undefined {
    const { AUTH_URL, DATA_DIR } = this.configuration;
    const client = this.entries()?.clients.find(({ client_id }) => client_id === DEMO.clientId);
    if (client?.organization_id !== DEMO.organizationId)
      return 'The registry of this service is not the demo registry, which npm start creates without REGISTRY_FILE.';
    if (!client.redirect_uris.includes(signedInUrl(AUTH_URL)))
      return (
        'The demo registry was made for another AUTH_URL. Restart the service to change it to this one: ' +
        `only one npm start can use the folder ${DATA_DIR} at a time.`
      );
    return undefined;
  }

  /** The credentials with which the demo backend signs in; `undefined` if the registry file has no such entries. */
  credentials(): { password: string; clientSecret: string } | undefined {
    const password = this.entries()?.agents.find(({ email }) => email === DEMO.agentEmail)?.password;
    const secret = this.entries()?.clients.find(({ client_id }) => client_id === DEMO.serverClientId)?.client_secret;
    return password && secret ? { password, clientSecret: secret } : undefined;
  }

  /** The entries of the registry file as it is now, because a developer may change it at any time. */
  private entries(): DemoEntries | undefined {
    const { REGISTRY_FILE } = this.configuration;
    try {
      // the errors of a long line quote it, which would take memory without end
      const { clients, agents } = parse(readFileSync(REGISTRY_FILE as string, 'utf8'), { prettyErrors: false });
      return Array.isArray(clients) && Array.isArray(agents) ? ({ clients, agents } as DemoEntries) : undefined;
    } catch {
      return undefined;
    }
  }
}
