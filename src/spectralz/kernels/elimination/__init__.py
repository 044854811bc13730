"""Bucket elimination: orders, trees and tables."""
