# SPDX-License-Identifier: Apache-2.0
"""JAX: a jitted function whose kernels XLA puts into a command buffer. How many launches that makes is XLA's affair; its log says
them, a line each. Usage: jax_route.py CALLS"""
import os
import sys

import jax
import jax.numpy as jnp

calls = int(sys.argv[1])
assert jax.devices()[0].platform == "gpu", jax.devices()


@jax.jit
def step(x):
    """Several kernels, none of which can be fused into another."""
    return jnp.tanh(x @ x) @ jnp.sin(x) + jnp.cos(x) @ x


x = jnp.ones((64, 64)) / 64
for _ in range(calls):
    x = step(x)
x.block_until_ready()
print(f"calls {calls} pid {os.getpid()}", flush=True)
