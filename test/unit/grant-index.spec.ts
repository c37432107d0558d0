import { Injectable, Scope, type Type } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { GrantCatalogue } from '../../src/registry/grant-catalogue.js';
import { type Grant, GrantBody, type Granted, GrantType } from '../../src/token/grant.js';
import { GrantIndex } from '../../src/token/grant-index.js';

const somebody = { entityId: 'somebody', organizationId: 'somewhere' };

@Injectable()
@GrantType('plain', { body: GrantBody })
class PlainGrant implements Grant {
  async grant(): Promise<Granted> {
    return somebody;
  }
}

@Injectable()
@GrantType('urn:example:form', { body: GrantBody, form: true })
class FormGrant implements Grant {
  async grant(): Promise<Granted> {
    return somebody;
  }
}

@Injectable({ scope: Scope.REQUEST })
@GrantType('fleeting', { body: GrantBody })
class FleetingGrant implements Grant {
  async grant(): Promise<Granted> {
    return somebody;
  }
}

async function indexOf(...grants: Type[]): Promise<GrantIndex> {
  const providers = [GrantIndex, GrantCatalogue, ...grants];
  const module = await Test.createTestingModule({ imports: [DiscoveryModule], providers }).compile();
  await module.init();
  return module.get(GrantIndex);
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
