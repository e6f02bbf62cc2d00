# SPDX-License-Identifier: Apache-2.0
# The programs of the routes to the driver API, linked to libcuda and not, and as libraries that a host opens.

ROUTES_DIR := tests/routes
ROUTES_OUT := $(BUILD)/tests/routes
ROUTES := $(addprefix $(ROUTES_OUT)/,driver linked plugin.so plugin-linked.so plugin-address.so opener.so)
ROUTES_H := $(wildcard $(ROUTES_DIR)/*.h)
TEST_BUILDS += $(ROUTES)

$(ROUTES_OUT)/driver: $(addprefix $(ROUTES_DIR)/,driver.c work.c cuda.c) $(ROUTES_H)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(OPT) $(WARN) $(CFLAGS) -pthread -o $@ $(filter %.c,$^) -ldl

$(ROUTES_OUT)/linked: $(addprefix $(ROUTES_DIR)/,driver.c work.c cuda.c) $(ROUTES_H) $(CPUDRIVER_DIR)/libcuda.so
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -DLINKED -std=gnu11 $(OPT) $(WARN) $(CFLAGS) -pthread -o $@ $(filter %.c,$^) -L$(CPUDRIVER_DIR) -lcuda -ldl

$(ROUTES_OUT)/plugin.so: $(addprefix $(ROUTES_DIR)/,work.c cuda.c) $(ROUTES_H)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -DPLUGIN -std=gnu11 $(OPT) $(WARN) $(CFLAGS) -fPIC -fvisibility=hidden -shared -pthread -o $@ $(filter %.c,$^) -ldl

$(ROUTES_OUT)/plugin-address.so: CPPFLAGS_ALL += -DBY_ADDRESS
$(ROUTES_OUT)/plugin-linked.so $(ROUTES_OUT)/plugin-address.so: $(addprefix $(ROUTES_DIR)/,work.c cuda.c) $(ROUTES_H) $(CPUDRIVER_DIR)/libcuda.so
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -DPLUGIN -DLINKED -std=gnu11 $(OPT) $(WARN) $(CFLAGS) -fPIC -fvisibility=hidden -shared -pthread -o $@ $(filter %.c,$^) -L$(CPUDRIVER_DIR) -lcuda -ldl

$(ROUTES_OUT)/opener.so: $(ROUTES_DIR)/opener.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(OPT) $(WARN) $(CFLAGS) -fPIC -fvisibility=hidden -shared -o $@ $< -ldl
