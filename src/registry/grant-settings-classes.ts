import { Injectable, type Type } from '@nestjs/common';

/**
 * The customer grants of this build and the classes that validate their settings, as far as the registry must know
 * them to refuse a file. The token endpoint fills it when it finds its grants.
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

  /** The class for a grant's entry under `grants`; `undefined` when the grant has no settings. */
  settings(grantType: string): Type<object> | undefined {
    return this.settingsOf.get(grantType);
  }
}
