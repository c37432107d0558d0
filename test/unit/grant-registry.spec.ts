import { Injectable, Scope, type Type } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { GrantSettingsClasses } from '../../src/registry/grant-settings-classes.js';
import { type Grant, GrantBody, type GrantResult, GrantType } from '../../src/token/grant.js';
import { GrantRegistry } from '../../src/token/grant-registry.js';

const somebody = { entityId: 'somebody', organizationId: 'somewhere' };

@Injectable()
@GrantType('plain', { body: GrantBody })
class PlainGrant implements Grant {
  async grant(): Promise<GrantResult> {
    return somebody;
  }
}

@Injectable()
@GrantType('urn:example:form', { body: GrantBody, form: true })
class FormGrant implements Grant {
  async grant(): Promise<GrantResult> {
    return somebody;
  }
}

@Injectable({ scope: Scope.REQUEST })
@GrantType('fleeting', { body: GrantBody })
class FleetingGrant implements Grant {
  async grant(): Promise<GrantResult> {
    return somebody;
  }
}

async function indexOf(...grants: Type[]): Promise<GrantRegistry> {
  const providers = [GrantRegistry, GrantSettingsClasses, ...grants];
  const module = await Test.createTestingModule({ imports: [DiscoveryModule], providers }).compile();
  await module.init();
  return module.get(GrantRegistry);
}

describe('the index of grants', () => {
  it('finds the grants among all providers by their names', async () => {
    const index = await indexOf(PlainGrant, FormGrant);
    expect(index.named('plain').handler).toBeInstanceOf(PlainGrant);
    expect(index.named('urn:example:form').handler).toBeInstanceOf(FormGrant);
  });

  it.each(['constructor', '__proto__', 'toString', 'Plain', 'plain '])('knows no grant called %s', async (name) => {
    const index = await indexOf(PlainGrant);
    expect(() => index.named(name)).toThrow(expect.objectContaining({ code: 'unsupported_grant_type' }));
  });

  it('reads forms only for a grant that declares it', async () => {
    const index = await indexOf(PlainGrant, FormGrant);
    expect(['plain', 'urn:example:form', 'nobody', null].map((name) => index.readsForms(name))).toEqual([
      false,
      true,
      false,
      false,
    ]);
  });

  it('stops the start for a grant that is made anew for each request', async () => {
    await expect(indexOf(FleetingGrant)).rejects.toThrow(
      'FleetingGrant: a grant lives as long as the service; take the scope from it, or from what it injects',
    );
  });
});
