import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import { OAuthError, REQUEST_ERRORS, type RequestFacts } from '../../oauth/oauth-error.js';
import { optionalString } from '../../oauth/parameters.js';
import { Clock } from '../../platform/clock.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { equalInConstantTime, sha256 } from '../../platform/secret.js';
import { ApiOptionalString } from '../../platform/validation/validation.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import { isValidAt } from '../../registry/previous-secrets.js';
import { Registry } from '../../registry/registry.js';
import type { ResourceServer } from '../../registry/resource-server.entity.js';
import { type Authorization, authorizationOf } from './authorization.js';
import { ClientAssertions, JWT_ASSERTION } from './client-assertions.js';

export class CredentialParameters {
  @ApiOptionalString('The id of the caller, if the request has no `Authorization: Basic`.', EXAMPLE.serverClientId)
  client_id?: string;

  @ApiOptionalString(
    'The secret of the caller, if the request has no `Authorization: Basic`. A client without a secret omits it.',
    EXAMPLE.clientSecret,
  )
  client_secret?: string;

  @ApiOptionalString('Required with `client_assertion`.', JWT_ASSERTION)
  client_assertion_type?: string;

  @ApiOptionalString(
    'A JWT that authenticates the caller in place of a secret (RFC 7523 §2.2): its own, or the token of its platform.',
    'HEADER.CLAIMS.SIGNATURE',
  )
  client_assertion?: string;
}

export interface ClientCredentials {
  id?: string | undefined;
  secret?: string | undefined;
  assertion?: string | undefined;
}

/** Compared with the secret of an unknown client, so that the response takes as long as for a wrong secret. */
const NO_SECRET = sha256('');

/** Authenticates clients and resource servers by secrets (RFC 6749 §2.3.1) or assertions (RFC 7523 §2.2). */
@Injectable()
export class ClientAuthentication {
  constructor(
    private readonly registry: Registry,
    private readonly clock: Clock,
    private readonly assertions: ClientAssertions,
  ) {}

  /** A client without a secret needs another proof, such as PKCE. @throws OAuthError `invalid_client` */
  async client({ id, secret, assertion }: ClientCredentials): Promise<ClientApplication> {
    const client = id === undefined ? undefined : this.registry.client(id);
    if (client && assertion !== undefined) {
      const { clientId, assertionKeys } = client;
      await this.assertions.verify(assertion, clientId, assertionKeys).catch(rethrowAbout({ clientId }));
      return client;
    }
    const isRight = this.isSecretOf(client, sha256(secret ?? ''));
    if (!client) throw OAuthError.invalidClient('unknown client');
    if (client.secretHash === null ? secret !== undefined : !isRight) throw OAuthError.invalidClient('wrong secret');
    if (client.secretHash === null && client.clientType === 'server')
      throw OAuthError.invalidClient('no secret registered');
    return client;
  }

  /** @throws OAuthError `invalid_client` */
  async authenticatedClient(credentials: ClientCredentials): Promise<ClientApplication> {
    const { secret, assertion } = credentials;
    if (secret === undefined && assertion === undefined) throw OAuthError.invalidClient('no secret and no assertion');
    return this.client(credentials);
  }

  /** Whether a request authenticates its client, if it need not. @throws OAuthError `invalid_client` */
  async authenticates(parameters: CredentialParameters, request: IncomingMessage): Promise<boolean> {
    const authorization = authorizationOf(request);
    const { id, ...proofs } = readClientCredentials(authorization, { ...parameters });
    if (authorization === undefined && Object.values(proofs).every((proof) => proof === undefined)) return false;
    await this.authenticatedClient({ id, ...proofs });
    return true;
  }

  /** @throws OAuthError `invalid_client` */
  async resourceServer({ id = '', secret = '', assertion }: ClientCredentials): Promise<ResourceServer> {
    const server = this.registry.resourceServer(id);
    if (server && assertion !== undefined) {
      const facts = { resourceServerId: server.id };
      await this.assertions.verify(assertion, server.id, server.assertionKeys).catch(rethrowAbout(facts));
      return server;
    }
    const isRight = equalInConstantTime(server?.secretHash ?? NO_SECRET, sha256(secret));
    if (server && isRight) return server;
    throw OAuthError.invalidClient('unknown resource server or wrong secret').about({ resourceServerId: server?.id });
  }

  /** Compared with all secrets, so that the duration does not depend on which one matches. */
  private isSecretOf(client: ClientApplication | undefined, hash: string): boolean {
    const isCurrent = equalInConstantTime(client?.secretHash ?? NO_SECRET, hash);
    const matching = (client?.previousSecrets ?? []).filter((each) => equalInConstantTime(each.hash, hash));
    return isCurrent || matching.some((each) => isValidAt(this.clock.now(), each));
  }
}

const rethrowAbout = (facts: RequestFacts) => (error: unknown) => {
  throw error instanceof OAuthError ? error.about(facts) : error;
};

/** RFC 6749 §2.3, RFC 7523 §2.2. @throws OAuthError `invalid_client`, or `invalid_request` if there are two ways */
export function readClientCredentials(
  authorization: Authorization | undefined,
  parameters: Record<string, unknown>,
): ClientCredentials {
  const id = optionalString('client_id', parameters.client_id);
  const secret = optionalString('client_secret', parameters.client_secret);
  const assertion = readAssertion(parameters);
  if (assertion !== undefined) {
    if (secret !== undefined || authorization !== undefined) throw REQUEST_ERRORS.assertionAndSecret();
    if (id === undefined) throw OAuthError.invalidRequest('client_id: required with client_assertion');
    return { id, assertion };
  }
  if (authorization === undefined) return { id, secret };
  if (authorization.isRepeated) throw OAuthError.invalidClient('more than one Authorization header');
  const basic = readBasicCredentials(authorization);
  if (!basic) throw OAuthError.invalidClient('Authorization: not Basic credentials');
  if (secret !== undefined) throw OAuthError.invalidRequest('client_secret: given twice, also by Authorization');
  if (id !== undefined && id !== basic.id)
    throw OAuthError.invalidRequest('client_id: must equal the id in Authorization');
  return basic;
}

function readAssertion({ client_assertion_type, client_assertion }: Record<string, unknown>): string | undefined {
  const type = optionalString('client_assertion_type', client_assertion_type);
  const assertion = optionalString('client_assertion', client_assertion);
  if (type === undefined && assertion === undefined) return undefined;
  if (type !== JWT_ASSERTION) throw OAuthError.invalidRequest(`client_assertion_type: must be ${JWT_ASSERTION}`);
  if (assertion === undefined) throw OAuthError.invalidRequest('client_assertion: required');
  return assertion;
}

/** The parts of the credentials (RFC 7617) are form-urlencoded (RFC 6749 §2.3.1). */
export function readBasicCredentials(authorization: Authorization | undefined): ClientCredentials | undefined {
  const [encoded] = /^[A-Za-z0-9+/]+={0,2}$/.exec(authorization?.basic ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  if (!isUtf8(bytes)) return undefined;
  const [, id, secret] = /^([^:]*):(.*)$/s.exec(bytes.toString('utf8')) ?? [];
  if (id === undefined || secret === undefined) return undefined;
  try {
    return { id: decodeFormValue(id), secret: decodeFormValue(secret) };
  } catch {
    return undefined;
  }
}

function decodeFormValue(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}
