import { Injectable, type Type } from '@nestjs/common';

/**
 * The names of all grants, and the classes that validate their settings. The registry checks files with them. The token
 * endpoint adds the grants at the start, because the registry may not depend on it.
 */
@Injectable()
export class GrantSettingsClasses {
  private readonly settingsOf = new Map<string, Type<object> | undefined>();
  private readonly optIns = new Set<string>();

  add(grantType: string, settings: Type<object> | undefined, optIn = false): void {
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

  /** The class for a grant's entry under `grants`; `undefined` if the grant has no settings. */
  settings(grantType: string): Type<object> | undefined {
    return this.settingsOf.get(grantType);
  }
}
