import { Injectable, type Type } from '@nestjs/common';

/** The resources whose entries have settings of grants. */
export type SettingsOwner = 'organization' | 'client';

type SettingsClasses = Record<SettingsOwner, Type<object> | undefined>;

/**
 * The names of all grants, and the classes that validate their settings. The registry checks files with them. The token
 * endpoint adds the grants at the start, because the registry may not depend on it.
 */
@Injectable()
export class GrantSettingsClasses {
  private readonly settingsOf = new Map<string, SettingsClasses>();
  private readonly optIns = new Set<string>();

  add(grantType: string, settings: SettingsClasses, optIn = false): void {
    this.settingsOf.set(grantType, settings);
    if (optIn) this.optIns.add(grantType);
  }

  has(grantType: string): boolean {
    return this.settingsOf.has(grantType);
  }

  /** Whether only clients that list the grant may use it. */
  isOptIn(grantType: string): boolean {
    return this.optIns.has(grantType);
  }

  /** The names of all grants in alphabetical order. */
  names(): string[] {
    return [...this.settingsOf.keys()].sort();
  }

  /** The class for a grant's entry under `grants` of a resource; `undefined` if the grant has no settings. */
  settings(grantType: string, owner: SettingsOwner): Type<object> | undefined {
    return this.settingsOf.get(grantType)?.[owner];
  }
}
