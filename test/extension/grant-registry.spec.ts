import { Injectable, Scope, type Type } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { GrantSettingsClasses } from '../../src/registry/grant-settings-classes.js';
import { type Grant, GrantBody, type GrantResult } from '../../src/token/grant.js';
import { GrantRegistry } from '../../src/token/grant-registry.js';
import { GrantType } from '../../src/token/grant-type.decorator.js';

const result = { entityId: 'customer', organizationId: 'organization' };

@Injectable()
@GrantType('plain', { body: GrantBody })
class PlainGrant implements Grant {
  async grant(): Promise<GrantResult> {
    return result;
  }
}

@Injectable()
@GrantType('urn:example:form', { body: GrantBody, form: true })
class FormGrant implements Grant {
  async grant(): Promise<GrantResult> {
    return result;
  }
}

@Injectable({ scope: Scope.REQUEST })
@GrantType('fleeting', { body: GrantBody })
class FleetingGrant implements Grant {
  async grant(): Promise<GrantResult> {
    return result;
  }
}

async function registryOf(...grants: Type[]): Promise<GrantRegistry> {
  const providers = [GrantRegistry, GrantSettingsClasses, ...grants];
  const module = await Test.createTestingModule({ imports: [DiscoveryModule], providers }).compile();
  await module.init();
  return module.get(GrantRegistry);
}

describe('the grant registry', () => {
  it('finds the grants among all providers by their names', async () => {
    const grants = await registryOf(PlainGrant, FormGrant);
    expect(grants.named('plain').handler).toBeInstanceOf(PlainGrant);
    expect(grants.named('urn:example:form').handler).toBeInstanceOf(FormGrant);
  });

  it.each(['constructor', '__proto__', 'toString', 'Plain', 'plain '])(
    'does not find a grant named %s',
    async (name) => {
      const grants = await registryOf(PlainGrant);
      expect(() => grants.named(name)).toThrow(expect.objectContaining({ code: 'unsupported_grant_type' }));
    },
  );

  it('reads forms only for a grant that declares it', async () => {
    const grants = await registryOf(PlainGrant, FormGrant);
    expect(['plain', 'urn:example:form', 'unknown', null].map((name) => grants.readsForms(name))).toEqual([
      false,
      true,
      false,
      false,
    ]);
  });

  it('prevents the start if a grant is request-scoped', async () => {
    await expect(registryOf(FleetingGrant)).rejects.toThrow(
      'FleetingGrant: a grant must be a singleton; remove the injection scope REQUEST or TRANSIENT from it and from its dependencies',
    );
  });
});
