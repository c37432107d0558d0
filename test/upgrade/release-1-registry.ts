import { registryWithSignIn, type SignInSystem } from '../support/assertion-issuer.js';
import { ACME, type testRegistry } from '../support/test-registry.js';

/** The registry of the tests without the fields that release 1 does not know. */
export function registryOfRelease1(signIn?: SignInSystem): ReturnType<typeof testRegistry> {
  const registry = registryWithSignIn(
    signIn ? { [ACME]: { issuer: signIn.issuer.trust().issuer, jwks: signIn.jwks } } : {},
  );
  const organizations = registry.organizations.map((entry) => ({ ...entry, public_clients: undefined }));
  return { ...registry, organizations };
}
