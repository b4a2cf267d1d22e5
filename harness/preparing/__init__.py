"""Turns a user's options into a session: finds or starts the servers, reads the questions, makes the settings, samples.

Callers use `prepare.prepare` and `session.carry_out`. Nothing here prints; options are named by field.
"""
