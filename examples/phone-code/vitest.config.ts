import { defineConfig } from 'vitest/config';

/** The files that the variables of this package name in the tests. */
export default defineConfig({
  test: {
    env: {
      PHONE_CODE_GATEWAY_KEY_FILE: 'test/key-of-the-tests',
      PHONE_CODE_CUSTOMER_KEY_FILE: 'test/key-of-the-tests',
    },
  },
});
