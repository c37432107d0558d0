import { Injectable, type Type } from '@nestjs/common';

/**
 * The names of all grants, and the classes that validate their settings. The registry checks files with them. The token
 * endpoint adds the grants at the start, because the registry may not depend on it.
 */
@Injectable()
export class GrantSettingsClasses {
  private readonly settingsOf = new Map<string, Type<object> | undefined>();

  add(grantType: string, settings: Type<object> | undefined): void {
    this.settingsOf.set(grantType, settings);
  }

  has(grantType: string): boolean {
    return this.settingsOf.has(grantType);
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
