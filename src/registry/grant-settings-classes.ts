import { Injectable, type Type } from '@nestjs/common';

export type SettingsOwner = 'organization' | 'client';

type SettingsClasses = Record<SettingsOwner, Type<object> | undefined>;

interface SettingsRules {
  optIn?: boolean | undefined;
  hasIssuer?: boolean | undefined;
}

/** The token endpoint adds the grants at the start, because the registry may not depend on it. */
@Injectable()
export class GrantSettingsClasses {
  private readonly grants = new Map<string, SettingsClasses & SettingsRules>();

  add(grantType: string, settings: SettingsClasses, rules: SettingsRules = {}): void {
    this.grants.set(grantType, { ...settings, ...rules });
  }

  has(grantType: string): boolean {
    return this.grants.has(grantType);
  }

  isOptIn(grantType: string): boolean {
    return this.grants.get(grantType)?.optIn ?? false;
  }

  /** Whether the settings of an organization name the `issuer` and `audience` of its proofs. */
  hasIssuer(grantType: string): boolean {
    return this.grants.get(grantType)?.hasIssuer ?? false;
  }

  /** The grants whose settings name an issuer. */
  withIssuer(): string[] {
    return [...this.grants.keys()].filter((grantType) => this.hasIssuer(grantType));
  }

  /** The class for a grant's entry under `grants` of a resource; `undefined` if the grant has no settings. */
  settings(grantType: string, owner: SettingsOwner): Type<object> | undefined {
    return this.grants.get(grantType)?.[owner];
  }
}
